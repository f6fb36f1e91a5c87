#include "stream/end_words.h"

#include <cerrno>

namespace ringbolt::stream {

int errno_of(CloseReason reason) {
  switch (reason) {
    case CloseReason::none:
      return 0;
    case CloseReason::local:
      return ECANCELED;
    case CloseReason::peer_closed:
      return EPIPE;
    case CloseReason::peer_lost:
      return ECONNRESET;
    case CloseReason::work_failed:
      return EIO;
    case CloseReason::refused:
      return ECONNREFUSED;
    case CloseReason::unreachable:
      return EHOSTUNREACH;
    case CloseReason::too_many:
      return EUSERS;
    case CloseReason::not_allowed:
      return EACCES;
    case CloseReason::handshake_timeout:
      return ETIMEDOUT;
    case CloseReason::over_budget:
      return ENOBUFS;
    case CloseReason::no_resources:
      return ENOMEM;
    default:
      return EPROTO;
  }
}

std::string_view words_of(CloseReason reason) {
  switch (reason) {
    case CloseReason::none:
      return "it has not ended";
    case CloseReason::local:
      return "this side has closed it";
    case CloseReason::peer_closed:
      return "the peer has closed it";
    case CloseReason::bad_command_length:
      return "the peer sent a command of other than 32 bytes: does it speak Valkey's protocol?";
    case CloseReason::bad_opcode:
      return "the peer sent a command that its role never sends: does it speak Valkey's protocol?";
    case CloseReason::bad_rx_length:
      return "the peer announced a receive buffer of no bytes, too many, or beyond the end of memory: see "
             "max_send_bytes";
    case CloseReason::over_budget:
      return "there is no memory for a sending buffer as long as the peer's: raise memory_budget_bytes";
    case CloseReason::rx_length_changed:
      return "the peer announced another length than at first, which the protocol forbids";
    case CloseReason::imm_overrun:
      return "the peer says that it wrote beyond the end of the receive buffer";
    case CloseReason::imm_underrun:
      return "the peer says that it wrote less than came";
    case CloseReason::imm_flood:
      return "the peer sends messages of no bytes without end";
    case CloseReason::command_flood:
      return "the peer sends commands that nobody asked for without end";
    case CloseReason::feature:
      return "the peer turned on a feature that was not offered";
    case CloseReason::out_of_send_slots:
      return "the peer asks on and on and takes no answer";
    case CloseReason::peer_lost:
      return "the peer does not answer any more: has its machine or cable gone?";
    case CloseReason::work_failed:
      return "the device refused or failed a request";
    case CloseReason::refused:
      return "nobody listens there over RDMA, or the listener does not want us";
    case CloseReason::unreachable:
      return "no RDMA device leads there, or nobody answered in time: `ringbolt status` shows devices and cables";
    case CloseReason::too_many:
      return "the listener has as many streams as max_streams allows";
    case CloseReason::not_allowed:
      return "the peer's address is not on the listener's list";
    case CloseReason::handshake_timeout:
      return "the peer asked for a connection and did not complete it in time";
    case CloseReason::no_resources:
      return "no memory, descriptor or queue pair was left for it here";
  }
  return "it ended for an unknown reason";
}

}  // namespace ringbolt::stream
