// What a process is told of its peers, all of it on the service thread.

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/debug_log.h"
#include "base/say.h"
#include "device/process.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

/// On standard error: what a peer gave us and what we can't do with it, with the remedy.
void tell_unmapped(const link::Peer& peer, std::string_view what, int error, std::string_view consequence) {
  static base::LinePace pace;
  if (!pace.may_say(base::now_ns())) {
    return;
  }
  const std::string_view remedy = error == EMFILE   ? "raise the limit of open files (ulimit -n)"
                                  : error == ENOMEM ? "raise the limit of address space (ulimit -v) or free memory"
                                                    : "end the other process: it sends what is not understood";
  base::say(fmt::format("ringbolt: {} of process {} can't be mapped ({}); {}; {}\n", what, peer.pid(),
                        std::generic_category().message(error), consequence, remedy));
}

}  // namespace

void Process::on_ready(const std::shared_ptr<link::Peer>& peer) {
  // Nobody need be told: without it the peer carries out what else we would do ourselves.
  const auto remote = remotes_.of(peer);
  if (const int error = remote->open_regions(); error != 0 && base::is_debug_log_wanted()) {
    tell_unmapped(*peer, "the table of memory regions", error,
                  "READ, WRITE and atomics are left to its service thread");
  }
  remote->open_wakes();  // what it takes is refused with the first offer
}

void Process::on_offer(const std::shared_ptr<link::Peer>& peer, const link::Offer& offer, link::OfferFiles files) {
  const auto qp = find(offer.target_qpn);
  if (qp == nullptr) {
    if (offer.qp_type == IBV_QPT_UD) {
      peer->send(link::Withdraw{offer.target_qpn, offer.source_qpn, link::kNoNonce});  // or its datagrams would wait
    }
    return;
  }
  const auto remote = remotes_.of(peer);
  Offered offered{base::fail(remote->wakes_error()), {}, {}};
  if (remote->wakes_error() == 0) {
    offered.lane = files.lane.is_open() ? link::SharedSegment::map(files.lane, link::kLaneBytes, true)
                                        : base::Result<link::SharedSegment>(base::fail(EMFILE));
    offered.receive_queue = remote->queue(offer.receive_queue, offer.receive_channel, std::move(files.receive_channel));
    offered.send_queue = remote->queue(offer.send_queue, offer.send_channel, std::move(files.send_channel));
  }
  const int error = offered.lane ? 0 : offered.lane.error().value;
  if (qp->lanes().on_offer(remote, offer, std::move(offered)) && error != 0) {
    peer->send(link::Refuse{offer.target_qpn, offer.source_qpn, offer.nonce, static_cast<uint32_t>(error)});
    tell_unmapped(*peer, "the memory between two queue pairs", error,
                  fmt::format("queue pair {:#x} here and {:#x} there fail", offer.target_qpn, offer.source_qpn));
  }
}

void Process::on_refuse(const std::shared_ptr<link::Peer>& peer, const link::Refuse& refuse) {
  const auto qp = find(refuse.target_qpn);
  if (qp != nullptr && qp->lanes().on_refuse(refuse)) {
    base::say(
        fmt::format("ringbolt: process {} can't map the memory between queue pairs {:#x} here and {:#x} there "
                    "({}): they fail; its own error output says what to do\n",
                    peer->pid(), refuse.target_qpn, refuse.source_qpn,
                    std::generic_category().message(static_cast<int>(refuse.error))));
  }
}

void Process::on_withdraw(const std::shared_ptr<link::Peer>&, const link::Withdraw& withdraw) {
  if (const auto qp = find(withdraw.target_qpn)) {
    qp->lanes().on_withdraw(withdraw);
  }
}

void Process::on_arena(const std::shared_ptr<link::Peer>& peer, const link::Arena& arena, base::UniqueFd memory) {
  const int error = remotes_.of(peer)->arenas().add(arena.arena_id, arena.length_bytes, memory);
  if (error != 0 && error != EALREADY) {
    tell_unmapped(*peer, fmt::format("{} bytes of memory", arena.length_bytes), error,
                  "messages of 2 KiB and more out of it end in an error, here and there");
  }
}

void Process::on_release(const std::shared_ptr<link::Peer>& peer, const link::Release& release) {
  const auto remote = remotes_.of(peer);
  if (remote->arenas().hide(release.arena_id)) {
    // By now they find nothing there any more; a copy that began before ends first.
    each_queue_pair([](QueuePair& qp) { qp.wait_for_copies(); });
    remote->arenas().forget(release.arena_id);
  }
}

void Process::on_gone(const std::shared_ptr<link::Peer>& peer) {
  // In this order: what the peer did before it went is told before its going is.
  each_completion_queue([](CompletionQueue& queue) { queue.take_arrived(); });
  each_queue_pair([&](QueuePair& qp) { qp.lanes().on_peer_gone(*peer, peer->left_orderly()); });
  each_completion_queue([](CompletionQueue& queue) { queue.on_peer_gone(); });
  management_->on_peer_gone(peer->slot());
  remotes_.forget(*peer);
}

void Process::on_readable() { network().serve(base::now_ns()); }

}  // namespace ringbolt::device
