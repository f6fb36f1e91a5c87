#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "bringup/port_card.h"
#include "probe/channel.h"
#include "verbs/objects.h"
#include "verbs/queue_pair.h"

namespace ringbolt::tools {

/// Messages of a measurement and the slots that hold them. Messages are sent from slot m % send_slots, which also is
/// the number of their pattern, and received into slot m % receive_slots. The counts differ by one, so what a slot held
/// before never is what it should hold next.
struct SlotPlan {
  size_t size_bytes = 0;
  uint32_t send_slots = 0;
  uint32_t receive_slots = 0;

  /// At most 15 MiB of each kind, except that there are two slots to send from at least.
  static SlotPlan for_size(size_t size_bytes);
};

/// One end of two connections over one device, with its buffers: words of 8 bytes have a queue pair of their own, since
/// there are devices whose receives must be as long as what they receive. RC where both ends have it, otherwise UC: how
/// far the receiver is, words tell, which nobody sees. Every wait ends by the channel's deadline. Calls throw
/// ProbeFailure and base::Error. Not thread-safe.
class Endpoint {
 public:
  Endpoint(const verbs::Library& library, const std::string& device, const SlotPlan& plan, Channel& channel);

  bool is_reliable() const { return type_ == IBV_QPT_RC; }
  void send_word(uint64_t value);
  uint64_t receive_word();
  /// Waits for either; true if a message is there, false if only a word is.
  bool next_is_message();
  /// Posts message `number` from its slot; waits first while the receiver has no room for it.
  void send_message(uint32_t number);
  /// Waits for the next message, checks that it is message `number` in every byte, and gives its slot back.
  void receive_message(uint32_t number);

 private:
  /// A queue pair and the slots of its messages, which lie one behind the other: those to send from, then the others.
  struct Lane {
    size_t offset = 0;
    size_t stride = 0;
    size_t length = 0;
    uint32_t send_slots = 0;
    uint32_t receive_slots = 0;
    std::optional<verbs::UnconnectedQueuePair> unconnected = {};
    std::optional<verbs::QueuePair> connected = {};
    uint32_t sends_under_way = 0;
    uint64_t receives_posted = 0;
    uint64_t receives_taken = 0;
    std::deque<uint32_t> arrived = {};  ///< lengths of what has come and was not taken, oldest first

    uint32_t number() const { return connected ? connected->number() : unconnected->number(); }
    size_t end() const { return offset + stride * (send_slots + receive_slots); }
  };
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  bringup::Capabilities look_at_device();
  void lay_out();
  void open(const bringup::Capabilities& device);
  void connect();
  void post_receives(Lane& lane);
  int post_receive(Lane& lane);
  void give_back_receive(Lane& lane);
  void post_send(Lane& lane, uint64_t slot);
  void take_word_of(const ibv_wc& completion);
  void poll_once();
  std::span<std::byte> send_slot(const Lane& lane, uint64_t number) const;
  std::span<std::byte> receive_slot(const Lane& lane, uint64_t count) const;

  SlotPlan plan_;
  Channel& channel_;
  std::unique_ptr<std::byte, Free> memory_;
  verbs::Context context_;
  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  std::optional<verbs::MemoryRegion> region_;
  ibv_qp_type type_ = IBV_QPT_RC;
  Lane words_;
  Lane messages_;
  std::deque<uint64_t> words_arrived_;
  uint64_t words_sent_ = 0;
  uint64_t messages_sent_ = 0;
  uint64_t messages_credited_ = 0;  // that the receiver says it has taken
  uint32_t window_ = 0;             // it has room for so many
  uint32_t fruitless_ = 0;          // looks since something came
};

}  // namespace ringbolt::tools
