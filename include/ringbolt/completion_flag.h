#pragma once

// A word in shared memory by which one party, the signaller, tells others that its work up to a sequence number is done
// and its payload readable: between threads, processes, or a host and a GPU (completion_flag.cuh). Nobody waits without
// a deadline, everybody hears of an abort, and a peer that died is named (docs/completion-flag.md).
//
// Header only, C++17, no library to link. Linux; elsewhere waiters sleep for at most 1 ms instead of being woken.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include <ringbolt/completion_flag_access.h>

namespace ringbolt {

/// Why a flag was given up.
enum class FlagReason : uint16_t {
  none = 0,
  user = 1,
  deadline = 2,
  peer_dead = 3,
  link_down = 4,
  verbs_error = 5,
  device_fault = 6,
};

/// Who gave a flag up, and why; all zero: nobody did.
struct FlagAbort {
  FlagReason reason = FlagReason::none;
  uint16_t rank = 0;       ///< of who gave it up, or of the peer that died
  uint32_t operation = 0;  ///< a number that means something to the program
};

/// How a wait ended.
enum class FlagStatus : uint8_t {
  ready,       ///< what was waited for has come; its payload can be read
  timeout,     ///< the deadline has passed; the flag is as it was
  aborted,     ///< aborted() says by whom
  peer_error,  ///< likewise, because a peer is dead
  refused,     ///< no such sequence number (1 to 2^62 - 1), or a deadline more than a day away
};

/// How a signal ended.
enum class FlagSignal : uint8_t {
  done,
  aborted,  ///< the flag is poisoned, and stays so
  refused,  ///< the number is not above the last one, or not below 2^62; the flag is as it was
};

/// What else than a CPU looks at a flag or writes its payload. Told by who creates the flag, once.
enum FlagUse : uint16_t {
  kFlagOfHosts = 0,
  kFlagReadByDevice = 1,       ///< a device waits for it: the host's stores are made visible beyond its caches' domain
  kFlagSignalledByDevice = 2,  ///< a device signals it: it can't wake a sleeping thread, so waiters look for themselves
  kFlagPayloadByDma = 4,       ///< the payload was written by DMA: read only behind a barrier for that
};

/// 256 bytes, all little-endian: docs/completion-flag.md has the layout. Each half has one kind of writer, and a pair
/// of cache lines of its own. Only for memory that create() or open() has looked at.
struct alignas(128) CompletionFlag {
  static constexpr uint32_t kMagic = 0x46434252;  ///< "RBCF"
  static constexpr uint16_t kVersion = 1;
  static constexpr uint64_t kPoison = uint64_t{1} << 62U;
  static constexpr uint64_t kLast = kPoison - 1;  ///< the highest sequence number
  using Clock = std::chrono::steady_clock;

  uint64_t seq;         ///< the signaller's: the last number that was signalled; bit 62: poisoned
  uint64_t abort_word;  ///< reason, rank << 16, operation << 32; 0: none. Set once, by whoever is first
  uint64_t dev_error;   ///< packed likewise; written by a device alone, which only stores
  uint32_t magic;
  uint16_t version;
  uint16_t uses;  ///< FlagUse
  uint8_t reserved_signaller[0x60];
  uint64_t acked;         ///< the waiter's: the highest number that it is done with
  uint32_t parked;        ///< how many waiters sleep, or are about to
  uint32_t waiter_state;  ///< for debuggers: 2 while one sleeps
  uint8_t reserved_waiter[0x70];

  /// Makes a flag in `memory`: 256 bytes on a boundary of 128, which stay the caller's and outlive every user of the
  /// flag. Before anybody else uses it. nullptr: the memory is not aligned.
  static CompletionFlag* create(void* memory, unsigned uses = kFlagOfHosts);
  /// A flag that somebody else has made. nullptr: there is none there (yet), or one of another version.
  static CompletionFlag* open(void* memory);

  /// Says that all work up to `number` is done: who sees it sees every store before this call. One signaller a flag,
  /// and one thread of it at a time; numbers rise from 1.
  FlagSignal signal(uint64_t number);
  /// Waits until `number` was signalled: spins, yields, then sleeps. `deadline`: mandatory; the far end of time is
  /// refused. `is_alive`, a bool(): called before each millisecond of sleep; false, and the flag is given up for all,
  /// with FlagReason::peer_dead and `peer`. Thread-safe, any number of waiters.
  template <class IsAlive>
  FlagStatus wait(uint64_t number, Clock::time_point deadline, IsAlive&& is_alive, uint16_t peer = 0);
  /// Likewise, without a look at a peer: a signaller that died shows as a timeout.
  FlagStatus wait(uint64_t number, Clock::time_point deadline) {
    return wait(number, deadline, [] { return true; });
  }
  /// Makes every wait end, those under way and later ones, with this reason unless there was one already. Any thread of
  /// any host process.
  void abort(FlagAbort why);
  /// Who gave the flag up. Thread-safe.
  FlagAbort aborted() const;
  /// Says that the payload up to `number` was read, and may be overwritten. The waiter.
  void acknowledge(uint64_t number) { __atomic_store_n(&acked, number, __ATOMIC_RELEASE); }
  /// The highest number that was acknowledged; what its reader read may be overwritten.
  uint64_t acknowledged() const { return __atomic_load_n(&acked, __ATOMIC_ACQUIRE); }
  /// For people: why a wait for `number` did not end with `ready`.
  std::string explain(uint64_t number) const;
};
static_assert(sizeof(CompletionFlag) == 256 && offsetof(CompletionFlag, magic) == 0x18 &&
              offsetof(CompletionFlag, acked) == 0x80 && offsetof(CompletionFlag, parked) == 0x88);

namespace detail {

constexpr uint64_t packed(FlagAbort why) {
  return static_cast<uint64_t>(why.reason) | uint64_t{why.rank} << 16U | uint64_t{why.operation} << 32U;
}

constexpr FlagAbort unpacked(uint64_t word) {
  return {static_cast<FlagReason>(word & 0xffffU), static_cast<uint16_t>(word >> 16U),
          static_cast<uint32_t>(word >> 32U)};
}

/// Whether `seq` has reached `wanted`, by the signed difference, as CUDA's stream operations compare: poison reaches
/// all.
constexpr bool is_reached(uint64_t seq, uint64_t wanted) { return static_cast<int64_t>(seq - wanted) >= 0; }

/// What poison to store over `seq`. A waiter falls asleep only while the low half is still what it has seen: so that of
/// poison is another one than that of the number before, and poison that is there already stays as it is.
constexpr uint64_t poison_after(uint64_t seq) {
  return (seq & CompletionFlag::kPoison) != 0 ? seq : CompletionFlag::kPoison | (~seq & 0xffff'ffffU);
}

/// The protocol, over any way to reach memory: `Access` is HostAccess, or a test's, which tries every interleaving. All
/// of it is thread-safe but signal(), which has one caller at a time.
template <class Access>
class FlagProtocol {
 public:
  FlagProtocol(CompletionFlag& flag, Access access = {}) : flag_(flag), access_(access) {}

  FlagSignal signal(uint64_t number) {
    const uint64_t before = access_.load_acquire(flag_.seq);
    if (is_poisoned(before) || access_.load_acquire(flag_.abort_word) != 0) {
      return FlagSignal::aborted;
    }
    if (number <= before || number > CompletionFlag::kLast) {
      return FlagSignal::refused;
    }
    const bool is_for_device = (flag_.uses & kFlagReadByDevice) != 0;
    if (is_for_device) {
      access_.order_for_device();
    }
    access_.store_release(flag_.seq, number);
    if (is_for_device) {
      access_.publish_to_device();
    }
    // Either this load sees the abort, or the aborter's poison comes behind the store above (store buffering): abort()
    // has the other half. The same fence stands between the store and the load of `parked`, and park() has that half.
    access_.full_fence();
    if (access_.load_acquire(flag_.abort_word) != 0) {
      poison(number);
      return FlagSignal::aborted;
    }
    if (access_.load_relaxed(flag_.parked) != 0) {
      access_.wake_all(flag_.seq);
    }
    return FlagSignal::done;
  }

  /// Who is first gives the reason; later ones change nothing.
  void abort(uint64_t why) {
    access_.set_if_zero(flag_.abort_word, why);
    access_.full_fence();
    poison(access_.load_acquire(flag_.seq));
  }

  /// Sleeps until a signal, an abort or `longest_ns`; not at all if `wanted` has come.
  void park(uint64_t wanted, uint64_t longest_ns) {
    access_.add(flag_.parked, 1);
    access_.full_fence();
    const uint64_t seen = access_.load_acquire(flag_.seq);
    if (!is_reached(seen, wanted)) {
      access_.sleep_while(flag_.seq, static_cast<uint32_t>(seen), longest_ns);
    }
    access_.add(flag_.parked, ~uint32_t{0});
  }

  static bool is_poisoned(uint64_t seq) { return (seq & CompletionFlag::kPoison) != 0; }

 private:
  void poison(uint64_t last) {
    access_.store_release(flag_.seq, poison_after(last));
    if ((flag_.uses & kFlagReadByDevice) != 0) {
      access_.publish_to_device();
    }
    access_.full_fence();
    access_.wake_all(flag_.seq);
  }

  CompletionFlag& flag_;
  Access access_;
};

constexpr unsigned kFlagSpins = 2000;
constexpr unsigned kFlagYields = 200;
constexpr uint64_t kFlagSliceNs = 1'000'000;
constexpr uint64_t kFlagShortestNapNs = 20'000;

}  // namespace detail

inline CompletionFlag* CompletionFlag::create(void* memory, unsigned uses) {
  if (reinterpret_cast<uintptr_t>(memory) % alignof(CompletionFlag) != 0) {
    return nullptr;
  }
  auto* flag = new (memory) CompletionFlag{};
  flag->version = kVersion;
  flag->uses = static_cast<uint16_t>(uses);
  __atomic_store_n(&flag->magic, kMagic, __ATOMIC_RELEASE);  // last: who sees it sees the rest
  return flag;
}

inline CompletionFlag* CompletionFlag::open(void* memory) {
  auto* flag = static_cast<CompletionFlag*>(memory);
  const bool is_aligned = reinterpret_cast<uintptr_t>(memory) % alignof(CompletionFlag) == 0;
  return is_aligned && __atomic_load_n(&flag->magic, __ATOMIC_ACQUIRE) == kMagic && flag->version == kVersion ? flag
                                                                                                              : nullptr;
}

inline FlagAbort CompletionFlag::aborted() const {
  return detail::unpacked(__atomic_load_n(&abort_word, __ATOMIC_ACQUIRE));
}

inline void CompletionFlag::abort(FlagAbort why) {
  detail::FlagProtocol<detail::HostAccess>(*this).abort(detail::packed(why));
}

inline FlagSignal CompletionFlag::signal(uint64_t number) {
  return detail::FlagProtocol<detail::HostAccess>(*this).signal(number);
}

template <class IsAlive>
FlagStatus CompletionFlag::wait(uint64_t number, Clock::time_point deadline, IsAlive&& is_alive, uint16_t peer) {
  if (number == 0 || number > kLast || deadline > Clock::time_point(Clock::duration::max() / 2)) {
    return FlagStatus::refused;
  }
  detail::FlagProtocol<detail::HostAccess> protocol(*this);
  uint64_t nap_ns = detail::kFlagShortestNapNs;
  const unsigned spins = detail::can_spin() ? detail::kFlagSpins : 0;
  for (unsigned turn = 0;; ++turn) {
    const uint64_t now_at = __atomic_load_n(&seq, __ATOMIC_ACQUIRE);
    if (protocol.is_poisoned(now_at)) {
      return aborted().reason == FlagReason::peer_dead ? FlagStatus::peer_error : FlagStatus::aborted;
    }
    if (detail::is_reached(now_at, number)) {
      if ((uses & kFlagPayloadByDma) != 0) {
        detail::HostAccess::order_after_dma();
      }
      return FlagStatus::ready;
    }
    if (turn < spins) {
      detail::pause();
      continue;
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      return FlagStatus::timeout;
    }
    if (turn < spins + detail::kFlagYields) {
      sched_yield();
      continue;
    }
    const auto left_ns = static_cast<uint64_t>(left);
    if (const uint64_t fault = __atomic_load_n(&dev_error, __ATOMIC_ACQUIRE); fault != 0) {
      protocol.abort(fault);
    } else if (!is_alive()) {
      abort({FlagReason::peer_dead, peer, static_cast<uint32_t>(number)});
    } else if ((uses & kFlagSignalledByDevice) != 0) {
      detail::nap(left_ns < nap_ns ? left_ns : nap_ns);
      nap_ns = nap_ns < detail::kFlagSliceNs / 2 ? nap_ns * 2 : detail::kFlagSliceNs;
    } else {
      __atomic_store_n(&waiter_state, 2, __ATOMIC_RELAXED);
      protocol.park(number, left_ns < detail::kFlagSliceNs ? left_ns : detail::kFlagSliceNs);
      __atomic_store_n(&waiter_state, 0, __ATOMIC_RELAXED);
    }
  }
}

inline std::string CompletionFlag::explain(uint64_t number) const {
  static const char* const kWords[] = {"nobody gave it up",          "given up by the program of rank ",
                                       "a deadline passed at rank ", "no sign of life from rank ",
                                       "no cable leads to rank ",    "a verbs call failed at rank ",
                                       "a device failed at rank "};
  const FlagAbort why = aborted();
  const uint64_t now_at = __atomic_load_n(&seq, __ATOMIC_ACQUIRE);
  std::string text = "completion flag: waited for " + std::to_string(number);
  text += (now_at & kPoison) != 0 ? std::string(", and it is poisoned") : ", and it is at " + std::to_string(now_at);
  const auto kind = static_cast<size_t>(why.reason);
  if (kind == 0 || kind >= sizeof kWords / sizeof *kWords) {
    return text + ": its signaller is stopped, slow or gone; look there";
  }
  return text + ": " + kWords[kind] + std::to_string(why.rank) + ", operation " + std::to_string(why.operation);
}

}  // namespace ringbolt
