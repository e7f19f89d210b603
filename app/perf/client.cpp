// SPDX-License-Identifier: BSD-3-Clause
#include "client.h"

#include "addresses.h"
#include "failure.h"
#include "file_list.h"
#include "file_receiver.h"
#include "file_sender.h"
#include "pingpong.h"
#include "session.h"
#include "stream.h"

namespace tagwire::perf {
namespace {

Json parameters_of(const Options& options) {
    switch (options.test) {
        case TestKind::kPingpong:
            return to_parameters(options.pingpong);
        case TestKind::kStream:
            return to_parameters(options.stream);
        case TestKind::kFile:
            return {{"send", !options.file.paths.empty()}, {"fetch", options.file.fetch}};
    }
    return {};
}

void run_file_client(Session& session, const std::vector<SourceFile>& files, const Options& options,
                     Report& report) {
    if (!files.empty()) {
        send_files(session, files, options.file.max_message, report, options.progress);
    }
    if (options.file.fetch) {
        receive_files(session, options.directory, report, options.progress);
    }
}

void run_test(Session& session, const std::vector<SourceFile>& files, const Options& options,
              Report& report) {
    switch (options.test) {
        case TestKind::kPingpong:
            return run_pingpong_client(session, options.pingpong, report, options.progress);
        case TestKind::kStream:
            return run_stream_client(session, options.stream, report, options.progress);
        case TestKind::kFile:
            return run_file_client(session, files, options, report);
    }
}

}  // namespace

void run_client(Fabric& fabric, const Options& options, Report& report) {
    const std::vector<SourceFile> files = list_files(options.file.paths);
    Json parameters = parameters_of(options);
    if (options.test == TestKind::kFile) {
        parameters["send"] = !files.empty();
    }
    report.set("test", name_of(options.test));
    report.set("parameters", parameters);
    const tw_address server = parse_address(options.server, options.udp_port);
    const std::string server_text = format_address(server);
    report.set("peer", server_text);

    Session session =
        Session::connect(fabric, server_text, server, name_of(options.test), std::move(parameters));
    report.say("connected to " + server_text);
    try {
        run_test(session, files, options, report);
        session.send({{"type", "bye"}});
        session.expect("bye");
    } catch (const PeerGaveUp&) {
        throw;
    } catch (const std::exception& error) {
        session.abort(error.what());
        throw;
    }
}

}  // namespace tagwire::perf
