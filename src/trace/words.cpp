#include "trace/words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>

#include <fmt/format.h>

namespace ringbolt::trace {
namespace {

// As infiniband/verbs.h numbers them (words_test.cpp looks).
constexpr auto kSendOpcodes =
    std::to_array<const char*>({"RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM", "RDMA_READ",
                                "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "LOCAL_INV", "BIND_MW", "SEND_WITH_INV"});
constexpr auto kSendCompletions =
    std::to_array<const char*>({"SEND", "RDMA_WRITE", "RDMA_READ", "COMP_SWAP", "FETCH_ADD", "BIND_MW", "LOCAL_INV"});
constexpr auto kStatuses =
    std::to_array<const char*>({"SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
                                "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
                                "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
                                "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
                                "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
                                "RESP_TIMEOUT_ERR", "GENERAL_ERR"});
constexpr auto kStates = std::to_array<const char*>({"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN"});
constexpr auto kAsyncEvents = std::to_array<const char*>(
    {"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG", "PATH_MIG_ERR",
     "DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR",
     "SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED", "CLIENT_REREGISTER", "GID_CHANGE"});
// InfiniBand Architecture Specification 1.4, table 35: the lower five bits of an opcode, and the upper three.
constexpr auto kPackets = std::to_array<const char*>({"SEND first",
                                                      "SEND middle",
                                                      "SEND last",
                                                      "SEND last, immediate",
                                                      "SEND only",
                                                      "SEND only, immediate",
                                                      "WRITE first",
                                                      "WRITE middle",
                                                      "WRITE last",
                                                      "WRITE last, immediate",
                                                      "WRITE only",
                                                      "WRITE only, immediate",
                                                      "READ request",
                                                      "READ response first",
                                                      "READ response middle",
                                                      "READ response last",
                                                      "READ response only",
                                                      "ACK",
                                                      "ATOMIC ACK",
                                                      "COMPARE & SWAP",
                                                      "FETCH & ADD",
                                                      "opcode 0x15",
                                                      "SEND last, invalidate",
                                                      "SEND only, invalidate"});
constexpr auto kServices = std::to_array<const char*>({"RC", "UC", "RD", "UD", "CNP", "XRC"});
constexpr uint8_t kReceiveBit = 0x80;  // IBV_WC_RECV

std::string name_in(std::span<const char* const> names, uint8_t number, const char* prefix, const char* what) {
  return number < names.size() ? fmt::format("{}{}", prefix, names[number]) : fmt::format("{} {}", what, number);
}

std::string struck_text(uint8_t struck) {
  constexpr std::array<const char*, 7> kWordsOf = {
      "lost", "held back", "bits turned", "refused", "receiver not ready", "another status", "doubled"};
  std::string text;
  for (size_t i = 0; i < kWordsOf.size(); ++i) {
    text += ((unsigned{struck} >> i) & 1U) == 0 ? "" : fmt::format("{}{}", text.empty() ? "" : ", ", kWordsOf[i]);
  }
  return text;
}

std::string flags_text(uint8_t flags) {
  return fmt::format("{}{}{}{}", (flags & kSignaled) != 0 ? ", signaled" : "",
                     (flags & kSolicited) != 0 ? ", solicited" : "", (flags & kInline) != 0 ? ", inline" : "",
                     (flags & kFenced) != 0 ? ", fenced" : "");
}

}  // namespace

std::string send_opcode_name(uint8_t opcode) { return name_in(kSendOpcodes, opcode, "IBV_WR_", "opcode"); }

std::string completion_opcode_name(uint8_t opcode) {
  return opcode == kReceiveBit       ? "IBV_WC_RECV"
         : opcode == kReceiveBit + 1 ? "IBV_WC_RECV_RDMA_WITH_IMM"
                                     : name_in(kSendCompletions, opcode, "IBV_WC_", "opcode");
}

std::string status_name(uint8_t status) { return name_in(kStatuses, status, "IBV_WC_", "status"); }
std::string state_name(uint8_t state) { return name_in(kStates, state, "", "state"); }
std::string async_event_name(uint8_t event) { return name_in(kAsyncEvents, event, "IBV_EVENT_", "event"); }

std::string packet_name(uint8_t opcode) {
  return fmt::format("{} {}", name_in(kServices, opcode >> 5U, "", "service"),
                     name_in(kPackets, opcode & 31U, "", "opcode"));
}

std::string event_name(const Record& record) {
  switch (record.kind) {
    case Kind::post_send:
      return "post " + send_opcode_name(record.code);
    case Kind::post_receive:
      return "post receive";
    case Kind::post_shared:
      return "post shared receive";
    case Kind::refused:
      return record.code == 0 ? "post send refused" : "post receive refused";
    case Kind::completion_made:
      return "completed " + completion_opcode_name(record.code);
    case Kind::completion_polled:
      return "polled " + completion_opcode_name(record.code);
    case Kind::armed:
      return "armed";
    case Kind::event_raised:
      return "event raised";
    case Kind::event_taken:
      return "event taken";
    case Kind::event_acknowledged:
      return "event acknowledged";
    case Kind::state:
      return "state " + state_name(record.code);
    case Kind::packet_sent:
      return "sent " + packet_name(record.code);
    case Kind::packet_came:
      return "came " + packet_name(record.code);
    case Kind::packet_dropped:
      return "dropped " + packet_name(record.code);
    case Kind::starved:
      return "no receive for a message";
    case Kind::not_ready:
      return "peer has no receive (RNR)";
    case Kind::resent:
      return "sent again";
    case Kind::timed_out:
      return "no answer in time";
    case Kind::sequence_error:
      return "peer missed a packet";
    case Kind::duplicate:
      return "came again";
    case Kind::fault:
      return "FAULT";
    case Kind::async_event:
      return async_event_name(record.code);
    case Kind::words:
      return "told";
    case Kind::none:
      break;
  }
  return "nothing";
}

std::string event_details(const Record& record) {
  switch (record.kind) {
    case Kind::post_send:
      return fmt::format("wr_id {:#x}, {} bytes{}", record.wr_id, record.bytes, flags_text(record.flags));
    case Kind::post_receive:
    case Kind::post_shared:
      return fmt::format("wr_id {:#x}, {} bytes", record.wr_id, record.bytes);
    case Kind::refused:
      return fmt::format("wr_id {:#x}: {}", record.wr_id, std::strerror(static_cast<int>(record.number)));
    case Kind::completion_made:
      return record.status != 0                 ? status_name(record.status)
             : (record.code & kReceiveBit) != 0 ? fmt::format("{} bytes, not polled yet", record.bytes)
                                                : "not polled yet";
    case Kind::completion_polled:
      return fmt::format("wr_id {:#x}{}", record.wr_id,
                         record.status != 0                 ? ", " + status_name(record.status)
                         : (record.code & kReceiveBit) != 0 ? fmt::format(", {} bytes", record.bytes)
                                                            : "");
    case Kind::armed:
      return record.flags != 0 ? "for solicited completions" : "";
    case Kind::event_acknowledged:
      return record.number > 1 ? fmt::format("{} of them", record.number) : "";
    case Kind::packet_sent:
    case Kind::packet_came:
    case Kind::packet_dropped:
      return fmt::format("psn {}, {} bytes", record.number, record.bytes);
    case Kind::resent:
    case Kind::duplicate:
      return fmt::format("{} packets", record.number);
    case Kind::timed_out:
    case Kind::sequence_error:
    case Kind::not_ready:
      return record.number > 1 ? fmt::format("{} times", record.number) : "";
    case Kind::fault:
      return record.code == kFaultOfMessage ? struck_text(record.flags)
                                            : fmt::format("packet {}: {}", record.number, struck_text(record.flags));
    default:
      return "";
  }
}

std::string words_of(const Record& record) {
  const std::string details = event_details(record);
  return event_name(record) + (details.empty() ? "" : ": " + details);
}

uint32_t queue_pair_in(std::string_view text) {
  constexpr std::string_view kBefore = "queue pair 0x";
  uint32_t qpn = 0;
  if (const size_t at = text.find(kBefore); at != std::string_view::npos) {
    std::from_chars(text.data() + at + kBefore.size(), text.data() + text.size(), qpn, 16);
  }
  return qpn;
}

}  // namespace ringbolt::trace
