// SPDX-License-Identifier: BSD-3-Clause
// A worker that several threads use at once.
#include <chrono>
#include <functional>
#include <thread>

#include "lib/tagwire/completion_queue.h"
#include "lib/tagwire/worker.h"
#include "test/tagwire/real_wire.h"

namespace tagwire::test {
namespace {

class Threading : public WirePair {
  protected:
    Threading() : WirePair(TW_THREAD_SAFE) {}
    ~Threading() override { EXPECT_TRUE(a.settle(b)); }
};

// Holds the lock, and sees a thread that makes the call wait for it.
bool takes_the_lock(tw_worker* worker, const std::function<void()>& call) {
    std::atomic<bool> returned = false;
    worker->lock().lock();
    std::thread caller([&] {
        call();
        returned = true;
    });
    while (!returned && worker->lock().waiting() == 0) {
        std::this_thread::yield();
    }
    const bool waits = !returned;
    worker->lock().unlock();
    caller.join();
    return waits;
}

TEST_F(Threading, EveryCallTakesTheLock) {
    char byte = 0;
    const iovec iov{&byte, 1};
    const tw_addr peer = a.address_of(b);
    const tw_address address = b.name();
    tw_address name;
    tw_msg_tagged tagged{&iov, 1, peer, 1, 0, nullptr, 0};
    tw_msg untagged{&iov, 1, peer, nullptr, 0};
    tw_addr index;
    size_t option = 64, size = sizeof(option);
    tw_cq_entry entry;
    tw_cq_error error;
    int fd;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    tw_cntr* cntr = nullptr;
    tw_ep* ep = nullptr;
    tw_wait* wait = nullptr;
    tw_eq* eq = nullptr;
    tw_eq_entry event;
    tw_eq_error failure;
    tw_pep* pep = nullptr;
    tw_pep_attr passive{};
    passive.size = sizeof(passive);
    passive.endpoint = TW_EP_ANY;
    // Remote memory: nobody has the key.
    constexpr uint64_t kKey = 7;
    uint64_t word = 0, compare = 0, result = 0;
    const iovec local{&word, sizeof(word)};
    const tw_ioc ioc{&word, 1}, compares{&compare, 1}, results{&result, 1};
    const tw_rma_iov place{0, sizeof(word), kKey};
    const tw_rma_ioc element{0, 1, kKey};
    const tw_msg_rma rma{&local, 1, peer, &place, 1, nullptr, 0};
    const tw_msg_atomic atomic{&ioc, 1, peer, &element, 1, TW_UINT64, TW_SUM, nullptr, 0};
    const tw_msg_atomic swap{&ioc, 1, peer, &element, 1, TW_UINT64, TW_CSWAP, nullptr, 0};
    const tw_mr_attr memory{sizeof(memory), &local, 1, TW_REMOTE_READ, TW_RMA_EVENT, 0, nullptr};
    tw_mr* mr = nullptr;
    const auto sum = TW_SUM, cswap = TW_CSWAP;
    struct Call {
        const char* name;
        std::function<void()> call;
    };
    const Call calls[] = {
        {"progress", [&] { tw_progress(a.worker); }},
        {"deadline", [&] { tw_worker_deadline(a.worker); }},
        {"stats", [&] { tw_worker_stats(a.worker, nullptr, 0); }},
        {"wait_fd", [&] { tw_worker_wait_fd(a.worker, &fd); }},
        {"arm", [&] { tw_worker_arm(a.worker); }},
        {"wait_open", [&] { tw_wait_open(a.worker, &wait); }},
        {"wait_arm", [&] { tw_wait_arm(wait); }},
        {"wait_close", [&] { tw_wait_close(wait); }},
        {"av_open", [&] { tw_av_open(a.worker, &av); }},
        {"av_insert", [&] { tw_av_insert(a.av, &address, &index); }},
        {"av_insert_auth_key", [&] { tw_av_insert_auth_key(av, "key", 3, &index); }},
        {"av_insert_with_key", [&] { tw_av_insert_with_key(av, &address, index, &index); }},
        {"av_lookup", [&] { tw_av_lookup(a.av, peer, &name); }},
        {"av_remove", [&] { tw_av_remove(av, index); }},
        {"cq_open", [&] { tw_cq_open(a.worker, nullptr, &cq); }},
        {"cq_read", [&] { tw_cq_read(a.cq, &entry, 1); }},
        {"cq_readerr", [&] { tw_cq_readerr(a.cq, &error); }},
        {"cq_sread", [&] { tw_cq_sread(a.cq, &entry, 1, 0); }},
        {"cntr_open", [&] { tw_cntr_open(a.worker, &cntr); }},
        {"cntr_read", [&] { tw_cntr_read(cntr); }},
        {"cntr_readerr", [&] { tw_cntr_readerr(cntr); }},
        {"cntr_add", [&] { tw_cntr_add(cntr, 1); }},
        {"cntr_adderr", [&] { tw_cntr_adderr(cntr, 1); }},
        {"cntr_set", [&] { tw_cntr_set(cntr, 1); }},
        {"cntr_seterr", [&] { tw_cntr_seterr(cntr, 1); }},
        {"cntr_wait", [&] { tw_cntr_wait(cntr, 1, 0); }},
        {"ep_open", [&] { tw_ep_open(a.worker, nullptr, &ep); }},
        {"ep_bind_av", [&] { tw_ep_bind_av(ep, av); }},
        {"ep_bind_cq", [&] { tw_ep_bind_cq(ep, cq, TW_SEND | TW_RECV); }},
        {"ep_bind_cntr", [&] { tw_ep_bind_cntr(ep, cntr, TW_SEND); }},
        {"ep_enable", [&] { tw_ep_enable(ep); }},
        {"ep_name", [&] { tw_ep_name(ep, &name); }},
        {"ep_setopt", [&] { tw_ep_setopt(ep, TW_OPT_MIN_MULTI_RECV, &option, sizeof(option)); }},
        {"ep_getopt", [&] { tw_ep_getopt(ep, TW_OPT_MIN_MULTI_RECV, &option, &size); }},
        {"cancel", [&] { tw_cancel(a.ep, &byte); }},
        {"tsend", [&] { tw_tsend(a.ep, &byte, 1, peer, 1, nullptr); }},
        {"tsendv", [&] { tw_tsendv(a.ep, &iov, 1, peer, 1, nullptr); }},
        {"tsendmsg", [&] { tw_tsendmsg(a.ep, &tagged, 0); }},
        {"tinject", [&] { tw_tinject(a.ep, &byte, 1, peer, 1); }},
        {"tsenddata", [&] { tw_tsenddata(a.ep, &byte, 1, 1, peer, 1, nullptr); }},
        {"tinjectdata", [&] { tw_tinjectdata(a.ep, &byte, 1, 1, peer, 1); }},
        {"trecv", [&] { tw_trecv(a.ep, &byte, 1, peer, 1, 0, nullptr); }},
        {"trecvv", [&] { tw_trecvv(a.ep, &iov, 1, peer, 1, 0, nullptr); }},
        {"trecvmsg", [&] { tw_trecvmsg(a.ep, &tagged, 0); }},
        {"send", [&] { tw_send(a.ep, &byte, 1, peer, nullptr); }},
        {"sendv", [&] { tw_sendv(a.ep, &iov, 1, peer, nullptr); }},
        {"sendmsg", [&] { tw_sendmsg(a.ep, &untagged, 0); }},
        {"inject", [&] { tw_inject(a.ep, &byte, 1, peer); }},
        {"senddata", [&] { tw_senddata(a.ep, &byte, 1, 1, peer, nullptr); }},
        {"injectdata", [&] { tw_injectdata(a.ep, &byte, 1, 1, peer); }},
        {"recv", [&] { tw_recv(a.ep, &byte, 1, peer, nullptr); }},
        {"recvv", [&] { tw_recvv(a.ep, &iov, 1, peer, nullptr); }},
        {"recvmsg", [&] { tw_recvmsg(a.ep, &untagged, 0); }},
        {"write", [&] { tw_write(a.ep, &word, 8, peer, 0, kKey, nullptr); }},
        {"writev", [&] { tw_writev(a.ep, &local, 1, peer, 0, kKey, nullptr); }},
        {"writemsg", [&] { tw_writemsg(a.ep, &rma, 0); }},
        {"inject_write", [&] { tw_inject_write(a.ep, &word, 8, peer, 0, kKey); }},
        {"writedata", [&] { tw_writedata(a.ep, &word, 8, 1, peer, 0, kKey, nullptr); }},
        {"inject_writedata", [&] { tw_inject_writedata(a.ep, &word, 8, 1, peer, 0, kKey); }},
        {"read", [&] { tw_read(a.ep, &word, 8, peer, 0, kKey, nullptr); }},
        {"readv", [&] { tw_readv(a.ep, &local, 1, peer, 0, kKey, nullptr); }},
        {"readmsg", [&] { tw_readmsg(a.ep, &rma, 0); }},
        {"atomic", [&] { tw_atomic(a.ep, &word, 1, peer, 0, kKey, TW_UINT64, sum, nullptr); }},
        {"atomicv", [&] { tw_atomicv(a.ep, &ioc, 1, peer, 0, kKey, TW_UINT64, sum, nullptr); }},
        {"atomicmsg", [&] { tw_atomicmsg(a.ep, &atomic, 0); }},
        {"inject_atomic", [&] { tw_inject_atomic(a.ep, &word, 1, peer, 0, kKey, TW_UINT64, sum); }},
        {"fetch_atomic",
         [&] { tw_fetch_atomic(a.ep, &word, 1, &result, peer, 0, kKey, TW_UINT64, sum, nullptr); }},
        {"fetch_atomicv",
         [&] {
             tw_fetch_atomicv(a.ep, &ioc, 1, &results, 1, peer, 0, kKey, TW_UINT64, sum, nullptr);
         }},
        {"fetch_atomicmsg", [&] { tw_fetch_atomicmsg(a.ep, &atomic, &results, 1, 0); }},
        {"compare_atomic",
         [&] {
             tw_compare_atomic(a.ep, &word, 1, &compare, &result, peer, 0, kKey, TW_UINT64, cswap,
                               nullptr);
         }},
        {"compare_atomicv",
         [&] {
             tw_compare_atomicv(a.ep, &ioc, 1, &compares, 1, &results, 1, peer, 0, kKey, TW_UINT64,
                                cswap, nullptr);
         }},
        {"compare_atomicmsg",
         [&] { tw_compare_atomicmsg(a.ep, &swap, &compares, 1, &results, 1, 0); }},
        {"flush", [&] { tw_ep_flush(a.ep, peer, nullptr); }},
        {"mr_open", [&] { tw_mr_open(a.worker, &memory, &mr); }},
        {"mr_bind_cntr", [&] { tw_mr_bind_cntr(mr, cntr, TW_REMOTE_READ); }},
        {"mr_close", [&] { tw_mr_close(mr); }},
        {"peer_stats", [&] { tw_peer_stats(a.ep, peer, nullptr, 0); }},
        {"reset_peer", [&] { tw_ep_reset_peer(a.ep, peer); }},
        {"peer_is_up", [&] { tw_ep_peer_is_up(a.ep, peer); }},
        {"input", [&] { tw_worker_input(a.worker, nullptr, 0); }},
        {"eq_open", [&] { tw_eq_open(a.worker, nullptr, &eq); }},
        {"eq_read", [&] { tw_eq_read(eq, &event, 0); }},
        {"eq_sread", [&] { tw_eq_sread(eq, &event, 0, 0); }},
        {"eq_readerr", [&] { tw_eq_readerr(eq, &failure); }},
        {"pep_open",
         [&] {
             passive.eq = eq;
             tw_pep_open(a.worker, &passive, &pep);
         }},
        {"listen", [&] { tw_listen(pep); }},
        {"reject", [&] { tw_reject(pep, reinterpret_cast<tw_request*>(64), nullptr, 0); }},
        {"ep_bind_eq", [&] { tw_ep_bind_eq(ep, eq); }},
        {"connect", [&] { tw_connect(ep, &address, nullptr, 0); }},
        {"accept", [&] { tw_accept(ep, nullptr, 0); }},
        {"getpeer", [&] { tw_getpeer(ep, &name); }},
        {"ep shutdown", [&] { tw_shutdown(ep, 0); }},
        {"pep_close", [&] { tw_pep_close(pep); }},
        {"eq_close", [&] { tw_eq_close(eq); }},
        {"ep_close", [&] { tw_ep_close(ep); }},
        {"cntr_close", [&] { tw_cntr_close(cntr); }},
        {"cq_close", [&] { tw_cq_close(cq); }},
        {"av_close", [&] { tw_av_close(av); }},
        {"shutdown", [&] { tw_worker_shutdown(b.worker); }},
    };
    for (const Call& call : calls) {
        tw_worker* const worker = std::string(call.name) == "shutdown" ? b.worker : a.worker;
        EXPECT_TRUE(takes_the_lock(worker, call.call)) << call.name;
    }
}

TEST_F(Threading, BlockedReadIsWokenByWhatAnotherThreadProgressed) {
    char buffer[8];
    ASSERT_EQ(tw_trecv(a.ep, buffer, sizeof(buffer), TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    std::atomic<bool> returned = false;
    std::thread reader([&] {
        tw_cq_entry entry;
        EXPECT_EQ(tw_cq_sread(a.cq, &entry, 1, -1), 1);
        returned = true;
    });
    ASSERT_EQ(tw_tinject(b.ep, "x", 1, b.address_of(a), 1), 0);
    while (!returned) {
        tw_progress(a.worker);
        tw_progress(b.worker);
    }
    reader.join();
}

TEST_F(Threading, OneOfSeveralSleepersGetsEachCompletion) {
    constexpr int kReaders = 4, kMessages = 200;
    char buffer[kMessages];
    for (char& byte : buffer) {
        ASSERT_EQ(tw_trecv(a.ep, &byte, 1, TW_ADDR_UNSPEC, 1, 0, &byte), 0);
    }
    std::atomic<int> left = kMessages;
    std::vector<std::thread> readers;
    for (int i = 0; i < kReaders; ++i) {
        readers.emplace_back([&] {
            tw_cq_entry entry;
            while (left > 0) {
                const ssize_t got = tw_cq_sread(a.cq, &entry, 1, -1);
                if (got == 1 && --left == 0) {
                    for (int other = 0; other < kReaders; ++other) {
                        tw_cq_signal(a.cq);
                    }
                }
            }
        });
    }
    const tw_addr to_a = b.address_of(a);
    for (int i = 0; i < kMessages; ++i) {
        while (tw_tinject(b.ep, "x", 1, to_a, 1) == -EAGAIN) {
            tw_progress(b.worker);
        }
        tw_progress(b.worker);
    }
    while (left > 0) {
        tw_progress(b.worker);
        std::this_thread::yield();
    }
    for (std::thread& reader : readers) {
        reader.join();
    }
}

// Threads of both programs send, receive, cancel, read completions and make progress, each with
// tags of its own, over a wire that loses frames. Each message arrives once, and whole.
class Exchange : public Threading {
  protected:
    static constexpr uint32_t kThreads = 4, kMessages = 300, kCancelled = 1u << 20;

    struct Slot {
        std::atomic<int> ended = 0;
        std::atomic<int> error = 0;
    };
    struct Program {
        WirePeer* peer;
        tw_addr to;
        std::vector<Slot> sends{kThreads * kMessages}, receives{kThreads * kMessages},
            cancels{kThreads * kMessages};
        std::atomic<uint32_t> received = 0, sent = 0, cancelled = 0;
        bool done() const {
            return received == kThreads * kMessages && sent == kThreads * kMessages &&
                   cancelled == kThreads * kMessages;
        }
    };

    static void end(Program& program, void* context, int error) {
        Slot& slot = *static_cast<Slot*>(context);
        slot.error = error;
        EXPECT_EQ(++slot.ended, 1);
        const auto within = [&](std::vector<Slot>& slots) {
            return &slot >= slots.data() && &slot < slots.data() + slots.size();
        };
        ++(within(program.sends)      ? program.sent
           : within(program.receives) ? program.received
                                      : program.cancelled);
    }

    static void read(Program& program, bool sleeps) {
        tw_cq_entry entry;
        const ssize_t got = sleeps ? tw_cq_sread(program.peer->cq, &entry, 1, 5)
                                   : tw_cq_read(program.peer->cq, &entry, 1);
        if (got == 1) {
            end(program, entry.context, 0);
        } else if (got == -TW_EAVAIL) {
            tw_cq_error error;
            if (tw_cq_readerr(program.peer->cq, &error) == 1) {  // another thread may be faster
                end(program, error.entry.context, error.error);
            }
        }
    }

    static void run(Program& program, const Program& other, uint32_t thread) {
        std::vector<uint64_t> in(kMessages, 0), out(kMessages);
        const auto post = [&](const std::function<int()>& call) {
            for (int error; (error = call()) != 0;) {
                ASSERT_EQ(error, -EAGAIN) << tw_last_error();
                tw_progress(program.peer->worker);
                read(program, false);
            }
        };
        for (uint32_t i = 0; i < kMessages; ++i) {
            const uint32_t number = thread * kMessages + i;
            out[i] = number * 1'000'003ull;
            post([&] {
                return tw_trecv(program.peer->ep, &in[i], 8, TW_ADDR_UNSPEC, number, 0,
                                &program.receives[number]);
            });
            post([&] {
                return tw_trecv(program.peer->ep, nullptr, 0, TW_ADDR_UNSPEC, number + kCancelled,
                                0, &program.cancels[number]);
            });
            post([&] {
                return tw_tsend(program.peer->ep, &out[i], 8, program.to, number,
                                &program.sends[number]);
            });
            post([&] { return tw_cancel(program.peer->ep, &program.cancels[number]); });
            tw_progress(program.peer->worker);
            read(program, false);
        }
        // The other program may miss the last acknowledgement, and ask for it once more.
        while (!program.done() || !other.done()) {
            // Some threads sleep, some poll.
            read(program, thread % 2 == 0);
            tw_progress(program.peer->worker);
        }
        for (uint32_t i = 0; i < kMessages; ++i) {
            EXPECT_EQ(in[i], (thread * kMessages + i) * 1'000'003ull);
        }
    }
};

TEST_F(Exchange, ThreadsOfTwoProgramsExchangeMessages) {
    end_a.loss_interval = 50;
    end_b.loss_interval = 61;
    Program programs[2] = {{&a, a.address_of(b)}, {&b, b.address_of(a)}};
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
        for (Program& program : programs) {
            const Program& other = programs[&program == programs ? 1 : 0];
            threads.emplace_back([&program, &other, i] { run(program, other, i); });
        }
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (Program& program : programs) {
        EXPECT_TRUE(program.done());
        for (Slot& slot : program.cancels) {
            EXPECT_EQ(slot.error, ECANCELED);
        }
        for (std::vector<Slot>* slots : {&program.sends, &program.receives}) {
            for (Slot& slot : *slots) {
                EXPECT_EQ(slot.error, 0);
            }
        }
    }
    end_a.loss_interval = end_b.loss_interval = 0;
}

TEST(ThreadingAttribute, UnknownValuesAreRefused) {
    WireEnd end(0, false);
    const tw_nic nic = end.nic();
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.nic = &nic;
    ASSERT_EQ(tw_address_parse("10.0.0.1:4791", &attr.address), 0);
    attr.mac[5] = 1;
    attr.packet_pool = end.pool();
    attr.threading = 2;
    tw_worker* worker = nullptr;
    EXPECT_EQ(tw_worker_open(&attr, &worker), -EINVAL);
    EXPECT_EQ(worker, nullptr);
}

}  // namespace
}  // namespace tagwire::test
