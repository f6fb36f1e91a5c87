#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "link/peer_socket.h"
#include "link/rendezvous.h"

namespace ringbolt::link {

/// What a peer handed over with its Hello.
struct Introduction {
  Hello hello;
  base::UniqueFd bell;
  base::UniqueFd region_table;
  base::UniqueFd wake_table;
};

/// The Peer that a Rendezvous makes. Thread-safe; the functions below the Peer interface are for the Rendezvous.
class ConnectedPeer final : public Peer {
 public:
  /// `id` is unique within the Rendezvous, `process` a pidfd or not open, `socket` the one that send() uses.
  ConnectedPeer(uint64_t id, uint32_t slot, pid_t pid, base::UniqueFd process, std::shared_ptr<PeerSocket> socket);

  uint32_t slot() const override { return slot_; }
  uint64_t incarnation() const override { return incarnation_.load(std::memory_order_acquire); }
  pid_t pid() const override { return pid_; }
  bool is_ready() const override { return is_ready_.load(std::memory_order_acquire); }
  bool is_gone() const override { return is_gone_.load(std::memory_order_acquire); }
  bool left_orderly() const override { return left_orderly_.load(std::memory_order_acquire); }
  bool memory_is_reachable() const override { return memory_is_reachable_.load(std::memory_order_acquire); }
  bool is_stopped() const override;
  void ring() override;
  int region_table_fd() const override { return is_ready() ? region_table_.get() : -1; }
  int wake_table_fd() const override { return is_ready() ? wake_table_.get() : -1; }
  bool send(const Message& message, std::span<const int> descriptors) override;

  uint64_t id() const { return id_; }
  int process_fd() const { return process_.get(); }
  /// Not gone, and the kernel knows of no exit that dispatch() has yet to see. A system call.
  bool is_alive() const;
  /// Once. The caller checked the descriptors.
  void become_ready(Introduction introduction);
  void note_bye() { left_orderly_.store(true, std::memory_order_release); }
  /// Sends Bye and waits until `deadline_ns` for the socket to take what is queued.
  void say_bye(uint64_t deadline_ns);
  /// Gone for good; gives the socket back.
  void end();
  /// In a forked child: closes every descriptor.
  void abandon_after_fork() RINGBOLT_NOT_ANALYSED;  // whoever held the lock stayed behind

 private:
  const uint64_t id_;
  const uint32_t slot_;
  const pid_t pid_;
  base::UniqueFd process_;  // the Rendezvous alone looks at it
  std::atomic<uint64_t> incarnation_{0};
  std::atomic<bool> is_ready_{false};
  std::atomic<bool> is_gone_{false};
  std::atomic<bool> left_orderly_{false};
  std::atomic<bool> memory_is_reachable_{false};
  // Written before is_ready_ is released, closed by the destructor: read without a lock.
  base::UniqueFd bell_;
  base::UniqueFd region_table_;
  base::UniqueFd wake_table_;
  base::Mutex mutex_;
  std::shared_ptr<PeerSocket> socket_ RINGBOLT_GUARDED_BY(mutex_);
};

/// Bytes and length of one message.
struct EncodedMessage {
  explicit EncodedMessage(const Message& message) : length(emit(message, storage)) {}
  std::array<std::byte, kMaxMessageBytes> storage{};
  size_t length;
  std::span<const std::byte> bytes() const { return {storage.data(), length}; }
};

}  // namespace ringbolt::link
