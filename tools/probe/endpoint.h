#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "probe/channel.h"
#include "probe/verbs_objects.h"

namespace ringbolt::tools {

/// Messages of a measurement and the slots that hold them. Messages are sent from slot m % send_slots, which also is
/// the number of their pattern, and received into slot m % receive_slots. The counts differ by one, so what a slot held
/// before never is what it should hold next.
struct SlotPlan {
  size_t size_bytes = 0;
  uint32_t send_slots = 0;
  uint32_t receive_slots = 0;

  /// At most 16 MiB of each kind, except that there are two slots to send from at least.
  static SlotPlan for_size(size_t size_bytes);
};

/// One end of an RC connection over one device, with its buffers. Every wait ends by the channel's deadline. Calls
/// throw ProbeFailure. Not thread-safe.
class Endpoint {
 public:
  Endpoint(const verbs::Library& library, const std::string& device, const SlotPlan& plan, Channel& channel);

  /// Sends `value` as a message of 8 bytes.
  void send_word(uint64_t value);
  /// The next message, which must be of 8 bytes.
  uint64_t receive_word();
  /// Waits for a message without taking it; true if it is a word and not one of the plan's size, which must differ.
  bool next_is_word();
  /// Posts message `number` from its slot; waits first while too many are under way.
  void send_message(uint32_t number);
  /// Waits for the next message, checks that it is message `number` in every byte, and gives its slot back.
  void receive_message(uint32_t number);

 private:
  void open();
  void connect();
  ibv_mtu port_mtu() const;
  void post_receive();
  void post_send(std::span<const std::byte> bytes, unsigned flags);
  void wait_received();
  ibv_wc take_received();
  void poll_once();
  std::span<std::byte> send_slot(uint32_t number);
  std::span<std::byte> receive_slot(uint64_t count);

  const verbs::Library& library_;
  const verbs::Calls& verbs_ = library_.calls();
  SlotPlan plan_;
  Channel& channel_;
  std::vector<std::byte> memory_;
  verbs::Context context_;
  OwnedVerbs<ibv_pd> pd_;
  OwnedVerbs<ibv_mr> mr_;
  OwnedVerbs<ibv_cq> cq_;
  OwnedVerbs<ibv_qp> qp_;
  uint32_t sends_under_way_ = 0;
  uint64_t receives_posted_ = 0;
  uint64_t receives_taken_ = 0;
  std::deque<ibv_wc> arrived_;  // receive completions not yet taken, oldest first
};

}  // namespace ringbolt::tools
