// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/pcap_wire.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "drivers/softcx/log.h"
#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {

namespace {

constexpr const char* kRemedy =
    "use files and a number of rounds, such as pcap:in=FILE,out=FILE,loop=3 (in or out may be "
    "left out; loop=0 has no end)";

std::string with_number(std::string path, uint32_t index) {
    const size_t at = path.find("%d");
    return at == std::string::npos ? path : path.replace(at, 2, std::to_string(index));
}

bool read_number(std::string_view text, uint64_t& number) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && stop == text.data() + text.size();
}

}  // namespace

PcapPlan PcapPlan::for_device(uint32_t index) const {
    return {with_number(in, index), with_number(out, index), loop};
}

bool parse_pcap_plan(const std::string& text, uint32_t devices, PcapPlan& plan,
                     std::string* error) {
    bool good = true, has_loop = false;
    for (size_t start = 0; start <= text.size() && good;) {
        const size_t end = std::min(text.find(',', start), text.size());
        const std::string part = text.substr(start, end - start);
        start = end + 1;
        if (part.starts_with("in=") && plan.in.empty()) {
            plan.in = part.substr(3);
            good = !plan.in.empty();
        } else if (part.starts_with("out=") && plan.out.empty()) {
            plan.out = part.substr(4);
            good = !plan.out.empty();
        } else if (part.starts_with("loop=") && !has_loop) {
            has_loop = true;
            good = read_number(std::string_view(part).substr(5), plan.loop);
        } else {
            good = false;
        }
    }
    if (!good || (plan.in.empty() && plan.out.empty()) || (has_loop && plan.in.empty())) {
        *error = kRemedy;
        return false;
    }
    if (devices > 1 && !plan.out.empty() && plan.out.find("%d") == std::string::npos) {
        *error =
            "several devices would write to one file: put %d into its name, which becomes "
            "the number of the device";
        return false;
    }
    return true;
}

PcapWire::PcapWire(std::unique_ptr<PcapReader> in, std::unique_ptr<PcapWriter> out, PcapPlan plan,
                   PortCounters& counters)
    : in_(std::move(in)), out_(std::move(out)), plan_(std::move(plan)), counters_(counters) {}

PcapWire::~PcapWire() {
    if (out_ != nullptr)
        counters_.wire_tx_refused += out_->flush();
}

bool PcapWire::send(std::span<const Piece> pieces, uint32_t total) noexcept {
    if (total > kMaxFrame)
        return false;
    sent_since_poll_ = true;
    if (out_ != nullptr)
        counters_.wire_tx_refused += out_->write(pieces, total);
    return true;
}

// A sender that pauses has its frames in the file, where others may look at them.
std::span<const uint8_t> PcapWire::receive() noexcept {
    if (!std::exchange(sent_since_poll_, false) && out_ != nullptr)
        counters_.wire_tx_refused += out_->flush();
    if (front_.empty() && in_ != nullptr)
        read_on();
    return front_;
}

void PcapWire::read_on() noexcept {
    while (in_ != nullptr) {
        const PcapReader::Record record = in_->next();
        ++round_records_;
        switch (record) {
            case PcapReader::Record::kFrame:
                if (in_->frame().empty()) {
                    ++counters_.wire_rx_truncated;
                    break;
                }
                front_ = in_->frame();
                ++frames_;
                return;
            case PcapReader::Record::kTruncated:
                ++counters_.wire_rx_truncated;
                break;
            case PcapReader::Record::kTooLong:
                ++counters_.wire_rx_refused;
                break;
            case PcapReader::Record::kEnd:
                end_of_file(false);
                break;
            case PcapReader::Record::kBroken:
                ++counters_.wire_rx_truncated;
                end_of_file(true);
                break;
        }
    }
}

void PcapWire::end_of_file(bool broken) noexcept {
    ++rounds_;
    if (broken && rounds_ == 1)
        log(LogLevel::kWarn, "%s ends inside a record", plan_.in.c_str());
    const bool is_empty = round_records_ == 1;
    if (rounds_ != plan_.loop && !is_empty) {
        round_records_ = 0;
        in_->rewind();
        return;
    }
    log(LogLevel::kInfo, "%s has been read: %llu frames", plan_.in.c_str(),
        static_cast<unsigned long long>(frames_));
    in_.reset();
}

std::string PcapWire::describe() const {
    std::string text = "pcap:";
    if (!plan_.in.empty())
        text += "in=" + plan_.in + (plan_.out.empty() ? "" : ",");
    if (!plan_.out.empty())
        text += "out=" + plan_.out;
    return text;
}

std::unique_ptr<Wire> open_pcap_wire(const std::string& text, uint32_t device_index,
                                     PortCounters& counters, std::string* error) {
    PcapPlan all;
    if (!parse_pcap_plan(text, 1, all, error))
        return nullptr;
    PcapPlan plan = all.for_device(device_index);
    std::unique_ptr<PcapReader> in;
    std::unique_ptr<PcapWriter> out;
    if (!plan.in.empty() && (in = PcapReader::open(plan.in, error)) == nullptr)
        return nullptr;
    if (!plan.out.empty() && (out = PcapWriter::create(plan.out, error)) == nullptr)
        return nullptr;
    if (in != nullptr && out != nullptr && in->is_same_file(out->fd())) {
        *error = plan.out + " is the file that is read, too: name another";
        return nullptr;
    }
    if (out != nullptr && ::ftruncate(out->fd(), 0) != 0) {
        *error = plan.out + " can't be emptied";
        return nullptr;
    }
    return std::make_unique<PcapWire>(std::move(in), std::move(out), std::move(plan), counters);
}

}  // namespace softcx
