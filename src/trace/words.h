#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/layout.h"

/// Records in words. All pure.
namespace ringbolt::trace {

/// "IBV_WR_SEND"; "opcode 99" of what is none. The same of the others.
std::string send_opcode_name(uint8_t opcode);
std::string completion_opcode_name(uint8_t opcode);
std::string status_name(uint8_t status);
std::string state_name(uint8_t state);
std::string async_event_name(uint8_t event);
/// Of a packet, as the specification numbers them (9.2): "RC SEND only".
std::string packet_name(uint8_t opcode);

/// "post IBV_WR_SEND", "polled IBV_WC_RECV": what happened, in a column's width.
std::string event_name(const Record& record);
/// "wr_id 7, 2048 bytes, signaled": what else is known of it; may be empty.
std::string event_details(const Record& record);
/// Both.
std::string words_of(const Record& record);

// What an asynchronous event is of, as ibv_event_type numbers them; the others are of queue pairs.
// IBV_EVENT_CQ_ERR; IBV_EVENT_SRQ_ERR and SRQ_LIMIT_REACHED; IBV_EVENT_DEVICE_FATAL to SM_CHANGE,
// CLIENT_REREGISTER and GID_CHANGE. IBV_EVENT_WQ_FATAL, of a work queue, is of none that we know.
constexpr bool is_of_queue(uint8_t event) { return event == 0; }
constexpr bool is_of_shared(uint8_t event) { return event == 14 || event == 15; }
constexpr bool is_of_port(uint8_t event) { return (event >= 8 && event <= 13) || event == 17 || event == 18; }

/// Whether the record is of that queue pair: its own, or of a completion queue or shared receive queue that `entry`
/// (QueuePairEntry or QueuePair; null: not known) has.
/// Ids of queues are hashes of addresses (id_of()): an event of another queue may be taken for one of this.
template <class Entry>
bool concerns(const Record& record, uint32_t qpn, const Entry* entry) {
  switch (record.kind) {
    case Kind::armed:
    case Kind::event_raised:
    case Kind::event_taken:
    case Kind::event_acknowledged:
      return entry != nullptr && (record.object == entry->send_queue || record.object == entry->receive_queue);
    case Kind::post_shared:
      return entry != nullptr && entry->shared_queue != 0 && record.object == entry->shared_queue;
    case Kind::refused:
      return record.code == 2 ? entry != nullptr && entry->shared_queue != 0 && record.object == entry->shared_queue
                              : record.object == qpn;
    case Kind::fault:
      return record.code == kFaultOfPeers ? entry != nullptr && record.object == entry->peer_qpn : record.object == qpn;
    case Kind::async_event:
      return is_of_port(record.code) ? true
             : is_of_queue(record.code)
                 ? entry != nullptr && (record.object == entry->send_queue || record.object == entry->receive_queue)
             : is_of_shared(record.code) ? entry != nullptr && record.object == entry->shared_queue
                                         : record.object == qpn;
    default:
      return record.object == qpn;
  }
}

/// The number in the first "queue pair 0x12" of a text; 0: there is none.
/// In hexadecimal, as all our messages name them.
uint32_t queue_pair_in(std::string_view text);

}  // namespace ringbolt::trace
