#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/adaptive_mutex.h"
#include "base/lock_guard.h"
#include "circuit/control.h"

namespace ringbolt::circuit {

/// How a circuit has failed. The first failure stays.
enum class FailureKind : uint8_t {
  none,
  no_way,    ///< no link leads to the peer any more, though it lives
  protocol,  ///< bytes that can't be, or a checksum that differs
  usage,     ///< the caller's mistake
  peer,      ///< its process has ended, closed its end, or fallen silent
};

/// What a program has asked of a circuit and awaits: base of Send and Receive. Owned by its circuit, in an array that
/// never moves: the pointer stays good until the circuit goes. A program holds it until it is given back
/// (take_if_done(), pop()).
struct Request {
  void* user = nullptr;  ///< of whoever posts it
};

/// Frames of a rail that are under way at most: as many receives stand ready for them, so that none ever meets none.
inline constexpr uint32_t kWindow = 16;
/// A frame with its header, so that payloads begin on a line of their own.
inline constexpr size_t kSlotBytes = 64 * 1024 + 128;

/// What both ends of a circuit have in common: a one-way connection for messages between two members, over all rails
/// that there are. Data calls come from one thread at a time; `lock` keeps the endpoint's thread apart from it, which
/// takes it to add and remove rails, and to move things on while the program asks for nothing. Shared by the program
/// and the endpoint (Outgoing, Incoming): the last one that lets go destroys it, with its rails' queue pairs, in its
/// own thread. Nothing here blocks but `lock`, which nobody holds across a wait; the endpoint's thread mostly tries
/// it, so a program that is off its processor holds up nobody else's circuits.
class Circuit {
 public:
  Circuit(CircuitId id, MemberId peer, std::string peer_name, bool has_checksums)
      : id_(id), peer_(peer), peer_name_(std::move(peer_name)), has_checksums_(has_checksums) {}
  virtual ~Circuit() = default;
  Circuit(const Circuit&) = delete;
  Circuit& operator=(const Circuit&) = delete;

  base::AdaptiveMutex lock;

  CircuitId id() const { return id_; }
  MemberId peer() const { return peer_; }
  const std::string& peer_name() const { return peer_name_; }

  /// Whether there is a rail that both ends have greeted each other on; stays so. Thread-safe.
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  /// Thread-safe. The words are there once this is not `none`, and stay.
  FailureKind failure() const { return failure_.load(std::memory_order_acquire); }
  // Without the lock, for it is written once, before the release of failure_, which the caller has acquired by
  // failure().
  const std::string& failure_text() const { return failure_text_; }
  /// May be called within progress(): rails stay where they are, and take_ended() takes them out later.
  void fail(FailureKind kind, std::string text) RINGBOLT_REQUIRES(lock) {
    if (failure_.load(std::memory_order_relaxed) == FailureKind::none) {
      // First, since a program that looks without the lock has its memory back as soon as it sees the failure.
      let_go();
      failure_text_ = std::move(text);
      failure_.store(kind, std::memory_order_release);
    }
  }

  /// The program closes its end: from now on its memory is neither read nor written, and nothing that it awaits comes.
  virtual void abandon() RINGBOLT_REQUIRES(lock) = 0;
  /// Likewise, for who has not the lock. Waits for it only if the program's memory may be in use just now. Where it
  /// is not abandoned here, nothing of the program's is in use, and the endpoint's thread ends the circuit at its
  /// next turn.
  void abandon_soon() RINGBOLT_EXCLUDES(lock) RINGBOLT_NOT_ANALYSED {
    if (lock.try_lock() || (is_awaited() && (lock.lock(), true))) {
      const base::LockGuard guard(lock, base::kAdoptLock);
      abandon();
    }
  }
  /// Takes what has come and sends what can be sent.
  virtual void progress() RINGBOLT_REQUIRES(lock) = 0;
  /// Whether the program awaits something of it that comes about by progress() alone. Thread-safe.
  bool is_awaited() const { return is_awaited_.load(std::memory_order_acquire); }
  /// Whether the thread that makes its data calls keeps it among those that it moves on (nccl/pending.h). Atomic, since
  /// one that made them before may let go of it just now; nothing else hangs on it.
  std::atomic<bool> is_kept = false;

  /// Likewise for the endpoint's thread, if the program does not do so itself just now.
  virtual void progress_idle() RINGBOLT_REQUIRES(lock) = 0;

 protected:
  void open() { is_open_.store(true, std::memory_order_release); }
  void set_awaited(bool is_awaited) { is_awaited_.store(is_awaited, std::memory_order_release); }
  bool has_checksums() const { return has_checksums_; }
  /// Before a failure is known: the program has its memory back once it hears of it, so no device may touch that any
  /// more.
  virtual void let_go() RINGBOLT_REQUIRES(lock) = 0;

 private:
  const CircuitId id_;
  const MemberId peer_;
  const std::string peer_name_;
  const bool has_checksums_;
  std::atomic<bool> is_open_ = false;
  std::atomic<bool> is_awaited_ = false;
  std::atomic<FailureKind> failure_ = FailureKind::none;
  std::string failure_text_;
};

}  // namespace ringbolt::circuit
