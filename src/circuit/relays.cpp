#include "circuit/relays.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/cpu_pause.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "base/start_thread.h"
#include "circuit/frame_header.h"

namespace ringbolt::circuit {
namespace {

/// So often a thread looks that has found nothing, some 50 us, before it sleeps.
// Each look polls two queues for each rail.
constexpr uint32_t kIdleLooks = 200;
// A bound for what wakes nobody, as a failure.
constexpr int kMostSleepMs = 50;
/// Where a device can't wake anybody.
constexpr int kPollMs = 1;

RailPlan plan_of(const PortUse& use, RelayedRail::Side side, uint32_t n_receives, uint32_t receive_bytes,
                 uint32_t send_depth, uint32_t peer_receive_bytes) {
  RailPlan plan;
  plan.type = side.type;
  plan.counts_frames = side.counts_frames;
  plan.peer_receive_bytes = peer_receive_bytes;
  plan.port = use.port;
  plan.gid_index = use.gid_index;
  plan.n_receives = n_receives;
  plan.receive_bytes = receive_bytes;
  plan.send_depth = send_depth;
  plan.relays = true;
  return plan;
}

}  // namespace

RelayedRail::RelayedRail(const Devices& devices, CircuitId circuit, uint16_t rail, Path path, uint8_t position, Side in,
                         Side out)
    : circuit_(circuit),
      number_(rail),
      path_(std::move(path)),
      position_(position),
      // Frames come in at `in_` and answers at `out_`: what one receives is what the other sends, in number and size.
      in_(devices, plan_of(path_[position].entry, in, kFrames, kSlotBytes, kAnswers, kFrameHeaderBytes)),
      out_(devices, plan_of(path_[position].exit, out, kAnswers, kFrameHeaderBytes, kFrames, kSlotBytes)) {
  // out_ is destroyed before in_, which has its memory registered: allowed, as in_ posts nothing any more.
  in_.may_send_from(out_.receives());
  out_.may_send_from(in_.receives());
}

// The relays' thread alone. Failures show in has_failed().
bool RelayedRail::progress() {
  bool has_done = false;
  // As many may be sent at a time as are received, so there is always room to send.
  const auto pass = [&](Rail& from, Rail& to) {
    (void)from.poll(
        [&](const Rail::Received& received) {
          has_done = true;
          (void)to.send_told(received.frame, received.length_bytes, received.slot);
        },
        [&](uint32_t slot) {
          has_done = true;
          // `to` is where the frame came from: its memory has been read.
          (void)to.post_receive(slot);
        });
  };
  pass(in_, out_);
  pass(out_, in_);
  return has_done;
}

// No thread yet: most members never relay.
Relays::Relays(Endings& endings, OnFailed on_failed)
    : endings_(endings), on_failed_(std::move(on_failed)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.is_open()) {
    throw base::Error(errno, "eventfd", "the relays' thread");
  }
}

Relays::~Relays() {
  is_ending_ = true;
  (void)eventfd_write(wake_.get(), 1);
  std::thread thread;
  {
    const base::LockGuard guard(lock_);
    thread.swap(thread_);
  }
  if (thread.joinable()) {
    thread.join();
  }
}

// From then on the relays' thread alone uses the rail's queue pairs.
void Relays::add(std::shared_ptr<RelayedRail> rail) {
  const base::LockGuard guard(lock_);
  if (!thread_.joinable()) {
    thread_ = base::start_thread([this] { run(); });
  }
  rails_.push_back(std::move(rail));
  ++version_;
  (void)eventfd_write(wake_.get(), 1);
}

// Only marks: the thread takes it out at its next look, and what it held is destroyed by Endings.
void Relays::end_if(const std::function<bool(const RelayedRail&)>& is_over) {
  const base::LockGuard guard(lock_);
  for (const auto& rail : rails_) {
    if (is_over(*rail)) {
      rail->is_ended = true;
    }
  }
  (void)eventfd_write(wake_.get(), 1);
}

std::vector<std::shared_ptr<RelayedRail>> Relays::all() {
  const base::LockGuard guard(lock_);
  return rails_;
}

void Relays::run() {
  Rails rails;
  uint32_t version = 0;
  uint32_t n_idle = 0;
  // An atomic; the eventfd ends a sleep.
  while (!is_ending_) {
    try {
      if (run_once(rails, version)) {
        n_idle = 0;
      } else if (++n_idle < kIdleLooks) {
        base::cpu_pause();
      } else {
        sleep(rails);
        n_idle = 0;
      }
    } catch (const std::exception&) {
      // No memory just now: what was to be done is still to be done, in a while. Not at the eventfd, which stays
      // readable until sleep() reads it: this would be no pause.
      n_idle = 0;
      constexpr int kPauseMs = 1;
      (void)::poll(nullptr, 0, kPauseMs);
    }
  }
}

/// Whether anything was to be done.
bool Relays::run_once(Rails& rails, uint32_t& version) {
  // Read before the list: a rail that is added in between is seen now, and looked for once more.
  if (const uint32_t newest = version_; newest != version) {
    const base::LockGuard guard(lock_);
    rails = rails_;
    version = newest;
  }
  return serve(rails);
}

bool Relays::serve(Rails& rails) {
  bool has_done = false;
  bool has_ended = false;
  for (const auto& rail : rails) {
    if (!rail->is_ended) {
      has_done = rail->progress() || has_done;
      if (rail->has_failed()) {
        // Once for each rail, on this thread, without the lock.
        on_failed_(*rail);
        rail->is_ended = true;
      }
    }
    has_ended = has_ended || rail->is_ended;
  }
  if (has_ended) {
    const auto is_over = [](const auto& rail) { return rail->is_ended.load(); };
    Rails over;  // go without the lock
    {
      const base::LockGuard guard(lock_);
      std::ranges::copy_if(rails_, std::back_inserter(over), is_over);
      std::erase_if(rails_, is_over);
      ++version_;
    }
    std::erase_if(rails, is_over);
    for (auto& one : over) {
      endings_.end(std::move(one), [] {});
    }
  }
  return has_done;
}

void Relays::sleep(Rails& rails) {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  int timeout_ms = kMostSleepMs;
  for (const auto& rail : rails) {
    for (Rail* const end : {&rail->in(), &rail->out()}) {
      // Before the last look: what comes after it raises the event (ibv_req_notify_cq(3)).
      end->arm();
      if (end->channel_fd() >= 0) {
        fds.push_back({end->channel_fd(), POLLIN, 0});
      } else {
        timeout_ms = kPollMs;
      }
    }
  }
  if (serve(rails)) {
    return;  // it came before the queues were armed
  }
  // A signal ends it early, which does no harm.
  (void)::poll(fds.data(), fds.size(), timeout_ms);
  eventfd_t woken = 0;
  (void)eventfd_read(wake_.get(), &woken);
}

}  // namespace ringbolt::circuit
