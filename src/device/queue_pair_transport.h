#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "device/completion_queue.h"
#include "device/half_locks.h"
#include "device/send_request.h"
#include "link/lane_consumer.h"
#include "link/lane_producer.h"

namespace ringbolt::device {

class ReceiveQueue;
class SendQueue;

/// What moves the data of a queue pair to its peer, or its peers, and back: through shared memory, or over a network.
/// Few functions of it are called for a request: the indirect calls are what a class that tests which transport it has
/// would pay as branches. The sending half is called under the queue pair's lock for
/// sending, the receiving half under the one for receiving, and each keeps its data to itself.
/// Owned by the queue pair, installed with the step to RTR (of UD: from the beginning), and ended by the step to RESET
/// under both locks, when no completion queue knows the queue pair. What has no lock in its declaration is read by
/// whoever holds one of the two, or the lock of a completion queue that the queue pair is attached to.
class QueuePairTransport {
 public:
  QueuePairTransport() = default;
  QueuePairTransport(const QueuePairTransport&) = delete;
  QueuePairTransport& operator=(const QueuePairTransport&) = delete;
  virtual ~QueuePairTransport() = default;

  // The sending half.
  /// The step to RTS, for a send queue of so many slots. Throws std::bad_alloc.
  /// No effect when it has been called before: from SQD to RTS nothing begins anew.
  virtual void start(uint32_t /*slots*/) RINGBOLT_REQUIRES(send_half) {}
  /// Gets on with a request, whose turn it is. True: it need not be pushed any further; it is complete once
  /// is_complete() says so. May fail it: SendQueue::fail().
  /// `entry` is the one at `sends.next`. False: nothing of it can leave now (no lane, no room), and it is submitted
  /// again, from where `entry.moved` says. Never blocks. May throw std::bad_alloc before anything of it has left.
  virtual bool submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half) = 0;
  /// The same, without more ado, for a request of one piece and no flags but those of inline, signaled and solicited
  /// ones. False: nothing has happened, and submit() is to be called.
  virtual bool execute_at_once(SendEntry& /*entry*/, const ibv_send_wr& /*wr*/) RINGBOLT_REQUIRES(send_half) {
    return false;
  }
  /// The end of a call that submitted: what was submitted leaves, and whoever waits for it is told.
  /// A system call for a lane only where the peer waits; for a network one for each batch. Never blocks.
  virtual void push_out(SendQueue& queue) RINGBOLT_REQUIRES(send_half) = 0;
  /// Takes in what has come of answers. `look_ns`: CompletionQueue::look_ns(), or 0.
  /// `look_ns` spares it a clock: CLOCK_MONOTONIC of when the poll began.
  virtual void take_answers(SendQueue& queue, uint64_t look_ns) RINGBOLT_REQUIRES(send_half) = 0;
  /// Of a request that was submitted and did not fail. Failing it, it is complete as well.
  virtual bool is_complete(SendQueue& queue, SendEntry& entry, const SendRequest& request)
      RINGBOLT_REQUIRES(send_half) = 0;
  /// Puts the queue pair into the state ERR, and says so, if none of what was submitted will ever be complete.
  /// False: what was submitted may still complete, and the caller waits.
  virtual bool give_up() RINGBOLT_REQUIRES(send_half) = 0;
  /// Sends that were submitted are flushed.
  virtual void flush() RINGBOLT_REQUIRES(send_half) {}
  /// Ends what has waited too long, and wakes peers that seem to sleep. Takes the lock for sending itself.
  /// Does nothing if somebody else holds that lock: who sends is at it anyway, and the next tick comes.
  virtual void check_timers(SendQueue&, uint64_t /*now_ns*/) {}
  /// Whether a send that has completed early, and was submitted or is next, is on its way to the peer without doubt
  /// (`delivered`), may yet get there (`underway`), or won't soon.
  enum class Delivery : uint8_t { delivered, underway, stuck };
  virtual Delivery delivery(const SendQueue& queue, uint32_t index) RINGBOLT_REQUIRES(send_half) = 0;
  /// Tries again what found no room before.
  virtual void send_unsent(SendQueue&) RINGBOLT_REQUIRES(send_half) {}
  /// The peer has yet to read a send in this process' memory, which must not go before that. Hurries it.
  virtual bool is_being_read() RINGBOLT_REQUIRES(send_half) { return false; }
  /// Whether the peer has met all that was sent, of which it is told at once if `hurries`: it has taken it, or has no
  /// receive for it. Of networks, whose packets tell, always `taken`.
  enum class Reception : uint8_t { unknown, taken, starved };
  virtual Reception reception(bool /*hurries*/) RINGBOLT_REQUIRES(send_half) { return Reception::taken; }
  /// RNR NAK timer of the receiver, as far as it is known, in microseconds.
  virtual uint32_t rnr_timer_us() const RINGBOLT_REQUIRES(send_half) = 0;

  // The receiving half.
  /// Puts what has come where it belongs, and completes receives.
  /// As far as `cq` has room and a bound of messages that one peer may have at a time. What is left stays where it
  /// lies, and the queue pair stays marked: has_arrived(). A message that fails its receive puts the queue pair into
  /// ERR.
  virtual void receive(ReceiveQueue& queue, CompletionQueue& cq) RINGBOLT_REQUIRES(receive_half, cq.lock) = 0;
  /// Receives are about to be posted behind `posted` ones that nothing has taken yet.
  virtual void on_posting(uint32_t /*posted*/) RINGBOLT_REQUIRES(receive_half) {}
  /// Something has come for which a receive may wait.
  virtual bool has_arrived() const RINGBOLT_REQUIRES(receive_half) = 0;
  /// The last words to the peer of a queue pair that receives no more: what found no room before.
  virtual void send_unsent_answers() RINGBOLT_REQUIRES(receive_half) {}

  /// Beside what has_arrived() knows: the peer has yet to be told of something, or it found no room.
  virtual bool may_have_news() const RINGBOLT_REQUIRES(receive_half) { return false; }

  // Without locks, by whoever looks whether there is something to do; never false by mistake.
  bool may_receive() const { return lane_ != nullptr ? lane_->has_slot() || lane_->has_news() : may_have_arrived(); }
  /// What was sent in the slots before `end` is done with, as far as take_answers() has heard. Of lanes alone.
  bool has_consumed(uint32_t end) const RINGBOLT_REQUIRES(send_half) {
    return producer_ != nullptr && producer_->is_done(end);
  }
  bool may_send() const { return lane_ == nullptr && may_have_answers(); }
  /// Something that was sent has found no room so far.
  virtual bool has_unsent() const { return false; }
  /// When its timers want to be looked at, or what found no room tried again; UINT64_MAX: never.
  virtual uint64_t deadline_ns() const { return UINT64_MAX; }

  /// The queue pair is in error: its peers shall ask nothing of it any more. Under either lock; of RC and UC also
  /// without, while the transport can't end (QueuePair::fail_from_queue).
  /// No wait and no message: words in lanes that peers read before each access.
  virtual void close() = 0;
  /// The queue pair is reset or destroyed: the last words to the peers. Of UD it goes on after a reset; of RC and UC
  /// nothing else is called.
  virtual void disconnect() RINGBOLT_REQUIRES(send_half, receive_half) {}

 protected:
  /// `lane`: the only one that anything comes through: every poll looks there, and is spared an indirect call.
  explicit QueuePairTransport(const link::LaneConsumer* lane) : lane_(lane) {}
  /// The lane that sends go into; must outlive this.
  void note_producer(const link::LaneProducer& lane) RINGBOLT_REQUIRES(send_half) { producer_ = &lane; }
  /// Never false by mistake, see may_receive().
  virtual bool may_have_arrived() const { return true; }
  virtual bool may_have_answers() const { return false; }

 private:
  const link::LaneConsumer* const lane_ = nullptr;
  const link::LaneProducer* producer_ RINGBOLT_GUARDED_BY(send_half) = nullptr;
};

}  // namespace ringbolt::device
