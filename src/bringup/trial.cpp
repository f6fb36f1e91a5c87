#include "bringup/trial.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/condition.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "verbs/expected_refusals.h"

namespace ringbolt::bringup {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
// 24 bits; nothing is ever sent to it.
constexpr uint32_t kNobody = 0xfffffe;  // a queue pair number that no device has given out by now

// 0 when it has passed: no subtraction wraps.
uint64_t left_ns(uint64_t deadline_ns) {
  const uint64_t now_ns = base::now_ns();
  return std::max(deadline_ns, now_ns) - now_ns;
}

/// What a thread of trials works on, and keeps when it is left alone.
// Shared by the thread and by who waits; the last one destroys it.
struct Bench {
  verbs::Library library;
  std::string device;
  ibv_qp_type type;
  verbs::Path path;
  std::vector<TrialCandidate> candidates;

  base::Mutex mutex;
  base::Condition changed;
  std::vector<int> errors RINGBOLT_GUARDED_BY(mutex) = {};  ///< of the candidates that are done
  std::exception_ptr failure RINGBOLT_GUARDED_BY(mutex) = nullptr;
  bool is_over RINGBOLT_GUARDED_BY(mutex) = false;
  bool is_abandoned RINGBOLT_GUARDED_BY(mutex) = false;
};

// 0 or an errno: whether the device finds `candidate`. A step to RTR resolves the peer's address, and on some devices
// asks the peer's port; no packet of a queue pair leaves.
int try_one(const verbs::ProtectionDomain& pd, const verbs::CompletionQueue& cq, const Bench& bench,
            const TrialCandidate& candidate) {
  verbs::UnconnectedQueuePair qp(pd, {.type = bench.type, .send_cq = &cq, .receive_cq = &cq});
  try {
    qp.to_init(bench.path);
  } catch (const base::Error& error) {
    return error.errno_value();
  }
  return qp.try_to_rtr({.qp_number = kNobody, .psn = 0, .lid = candidate.lid, .gid = ibv_gid_of(candidate.gid)});
}

void try_all(Bench& bench) {
  const verbs::ExpectedRefusals expected(bench.library.calls());
  const verbs::Context context(bench.library, bench.device);
  const verbs::ProtectionDomain pd(context);
  const verbs::CompletionQueue cq(context, 1);
  for (const TrialCandidate& candidate : bench.candidates) {
    const int error = try_one(pd, cq, bench, candidate);
    // Held for a moment; the driver is never called with it.
    const base::LockGuard lock(bench.mutex);
    bench.errors.push_back(error);
    bench.changed.notify_one();
    // Others have taken over what is left: this thread came back too late.
    if (bench.is_abandoned) {
      return;
    }
  }
}

void run(const std::shared_ptr<Bench>& bench) {
  std::exception_ptr failure;
  try {
    try_all(*bench);
  } catch (...) {
    // Also std::bad_alloc and the like: an exception that leaves a thread ends the process.
    failure = std::current_exception();
  }
  const base::LockGuard lock(bench->mutex);
  bench->failure = failure;
  bench->is_over = true;
  bench->changed.notify_one();
}

/// What a thread finds out about candidates in turn, until one takes too long. Fewer than there are: that one was
/// stuck.
std::vector<int> run_until_stuck(const std::shared_ptr<Bench>& bench, uint32_t timeout_ms, uint64_t deadline_ns) {
  std::thread thread = base::start_thread([bench] { run(bench); });
  // Until it is joined or left behind nothing throws, which would end the process.
  size_t n_done = 0;
  std::exception_ptr failure;
  std::vector<int> errors;
  bool is_in_time = true;
  {
    const base::LockGuard lock(bench->mutex);
    while (!bench->is_over && is_in_time) {
      const auto most = std::chrono::nanoseconds(std::min(timeout_ms * kMillisecond, left_ns(deadline_ns)));
      is_in_time = bench->changed.wait_for(bench->mutex, most, [&]() RINGBOLT_REQUIRES(bench->mutex) {
        return bench->is_over || bench->errors.size() > n_done;
      });
      n_done = bench->errors.size();
    }
    // Under the lock: the thread sees it at its next candidate, and ends.
    bench->is_abandoned = !is_in_time;
    failure = bench->failure;
    errors.swap(bench->errors);
  }
  if (!is_in_time) {
    // It owns the bench, and so all that it uses, for as long as the driver holds it.
    thread.detach();
    return errors;
  }
  thread.join();
  if (failure) {
    std::rethrow_exception(failure);
  }
  return errors;
}

}  // namespace

std::vector<int> try_candidates(const verbs::Library& library, const std::string& device, ibv_qp_type type,
                                const verbs::Path& path, std::span<const TrialCandidate> candidates,
                                uint32_t timeout_ms, uint64_t deadline_ns) {
  std::vector<int> errors;
  size_t n_stuck = 0;
  // Each that is stuck leaves a thread behind: hence a bound on them.
  while (errors.size() < candidates.size() && n_stuck < kMostStuckTrials && left_ns(deadline_ns) > 0) {
    const auto left = candidates.subspan(errors.size());
    // A new thread and a new context for what is left: the old ones may be stuck for good.
    const std::shared_ptr<Bench> bench(new Bench{library, device, type, path, {left.begin(), left.end()}, {}, {}});
    const std::vector<int> found = run_until_stuck(bench, timeout_ms, deadline_ns);
    errors.insert(errors.end(), found.begin(), found.end());
    if (found.size() < left.size()) {
      errors.push_back(EINPROGRESS);
      ++n_stuck;
    }
  }
  // Those that nobody has tried.
  errors.resize(candidates.size(), ECANCELED);
  return errors;
}

}  // namespace ringbolt::bringup
