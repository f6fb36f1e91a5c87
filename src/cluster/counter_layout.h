#pragma once

// How a file of counters is laid out, and the names that Linux programs know them by. C and C++: the path shim, which
// is loaded into every program, reads these files too. docs/formats/counters.md describes the file, docs/metrics.md
// what moves each counter.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The file: one block that says what it is, then blocks of numbers, each written by one process at a time. A counter is
// the sum over all blocks, and no number in them ever falls: a block that outlives its process goes on counting for the
// next one. The magic is 8 bytes with the end of the literal. 16,384 blocks of 4 KiB limit a file to 64 MiB: whatever
// is longer is taken for a damaged file and not read.
#define RINGBOLT_COUNTER_MAGIC "RBCNT1\0"
#define RINGBOLT_COUNTER_BLOCK_BYTES 4096
#define RINGBOLT_COUNTER_MAX_BLOCKS 16384

// A block, in words of 8 bytes: one line of 64 bytes for its owner, some shared words, and then the cells. Word 0 is
// the owner's pid, for people; word 1 says whether the owner counts for a peer's port (CounterPage::Port). The rest
// of that line is zero. Changing any of these numbers needs a new magic.
#define RINGBOLT_COUNTER_PEERS_AT 1
#define RINGBOLT_COUNTER_SHARED_AT 8
#define RINGBOLT_COUNTER_SHARED_WORDS 56
#define RINGBOLT_COUNTER_CELLS_AT 64
#define RINGBOLT_COUNTER_LANE_WORDS 8
#define RINGBOLT_COUNTER_CELLS 28

/// Words of a lane. A cell is what one queue pair counts in: two lanes, one under each of its locks. The values are
/// places in the file: append only, as files outlive the programs that wrote them.
enum RingboltLaneWord {
  kLaneXmitWords,  ///< words of 4 bytes that left the port
  kLaneXmitPackets,
  kLaneRcvWords,
  kLaneRcvPackets,
  kLaneMessages,  ///< first lane: SENDs; second: receives completed
  kLaneRxWrites,  ///< requests that came
  kLaneRxReads,
  kLaneRxAtomics,
};

/// Words of a block that any thread of its process may add to: what happens seldom. Places in the file as well:
/// append only, before kSharedWords.
enum RingboltSharedWord {
  kSharedXmitWords,  ///< as in a lane, of what belongs to no queue pair of a program
  kSharedXmitPackets,
  kSharedRcvWords,
  kSharedRcvPackets,
  kSharedRcvErrors,            ///< packets with a wrong ICRC, without sense, or for a full inbox
  kSharedRcvConstraintErrors,  ///< packets of a foreign P_Key
  kSharedXmitDiscards,         ///< packets that could not leave
  kSharedXmitWait,             ///< microseconds that packets waited for room in the socket
  kSharedLinkDowned,           ///< times that `ringbolt cut` pulled the cable
  kSharedDuplicateRequest,     ///< requests that had been executed already
  kSharedOutOfSequence,        ///< requests before an earlier one; of UC: messages given up for a gap
  kSharedOutOfBuffer,          ///< messages that found no receive, and were turned away
  kSharedSentRnr,              ///< RNR NAKs that we sent
  kSharedReceivedRnr,          ///< and those that we got
  kSharedSequenceNak,          ///< NAKs of a wrong sequence that came
  kSharedImpliedNak,           ///< gaps among answers
  kSharedAckTimeout,           ///< times that the transport timer ran out
  kSharedResent,               ///< requests sent again
  kSharedProbes,               ///< early questions to a peer of our own what it lacks
  kSharedRetryExceeded,        ///< sends that completed with that status; as the next
  kSharedRnrRetryExceeded,
  kSharedRequestError,  ///< sends that completed with an error other than a flush
  kSharedRequestFlush,  ///< with a flush
  kSharedRequestRemoteAccess,
  kSharedRequestRemoteInvalid,
  kSharedReceiveError,  ///< receives likewise
  kSharedReceiveFlush,
  kSharedReceiveLength,  ///< receives that were too short
  kSharedReceiveAccess,  ///< peers' accesses that were refused
  kSharedWrongIcrc,
  kSharedRcvDrops,  ///< packets that came and were used by nobody
  kSharedPulled,    ///< SENDs read in the peer's own memory, in one copy
  kSharedWords,     ///< how many there are
};

/// All blocks added up. Sums wrap at 2^64. lanes[0] is what counts under send locks, lanes[1] under receive locks.
struct RingboltCounterSum {
  uint64_t shared[RINGBOLT_COUNTER_SHARED_WORDS];
  uint64_t lanes[2][RINGBOLT_COUNTER_LANE_WORDS];
};

/// One counter as programs see it: `folder`/`name` below /sys/class/infiniband/D/ports/1/. A word of the lanes (-1:
/// none), of which lanes (bit 0, bit 1), and a shared word (-1: none); without any it is 0 by nature.
struct RingboltCounter {
  const char* folder;
  const char* name;
  int lane_word;
  unsigned lanes;
  int shared_word;
};

// `counters` has the names of IBTA's PortCounters attributes as the kernel's drivers/infiniband/core/sysfs.c spells
// them; `hw_counters` those of rdma_rxe, mlx5 and EFA, so that tools made for those find them.
static const struct RingboltCounter kRingboltCounters[] = {
    {"counters", "port_xmit_data", kLaneXmitWords, 3, kSharedXmitWords},
    {"counters", "port_rcv_data", kLaneRcvWords, 3, kSharedRcvWords},
    {"counters", "port_xmit_packets", kLaneXmitPackets, 3, kSharedXmitPackets},
    {"counters", "port_rcv_packets", kLaneRcvPackets, 3, kSharedRcvPackets},
    {"counters", "unicast_xmit_packets", kLaneXmitPackets, 3, kSharedXmitPackets},
    {"counters", "unicast_rcv_packets", kLaneRcvPackets, 3, kSharedRcvPackets},
    {"counters", "multicast_xmit_packets", -1, 0, -1},
    {"counters", "multicast_rcv_packets", -1, 0, -1},
    {"counters", "port_rcv_errors", -1, 0, kSharedRcvErrors},
    {"counters", "port_rcv_constraint_errors", -1, 0, kSharedRcvConstraintErrors},
    {"counters", "port_rcv_remote_physical_errors", -1, 0, -1},
    {"counters", "port_rcv_switch_relay_errors", -1, 0, -1},
    {"counters", "port_xmit_discards", -1, 0, kSharedXmitDiscards},
    {"counters", "port_xmit_constraint_errors", -1, 0, -1},
    {"counters", "port_xmit_wait", -1, 0, kSharedXmitWait},
    {"counters", "symbol_error", -1, 0, -1},
    {"counters", "link_downed", -1, 0, kSharedLinkDowned},
    {"counters", "link_error_recovery", -1, 0, -1},
    {"counters", "local_link_integrity_errors", -1, 0, -1},
    {"counters", "excessive_buffer_overrun_errors", -1, 0, -1},
    {"counters", "VL15_dropped", -1, 0, -1},
    {"hw_counters", "sent_pkts", kLaneXmitPackets, 3, kSharedXmitPackets},
    {"hw_counters", "rcvd_pkts", kLaneRcvPackets, 3, kSharedRcvPackets},
    {"hw_counters", "rdma_sends", kLaneMessages, 1, -1},
    {"hw_counters", "rdma_recvs", kLaneMessages, 2, -1},
    {"hw_counters", "rx_write_requests", kLaneRxWrites, 3, -1},
    {"hw_counters", "rx_read_requests", kLaneRxReads, 3, -1},
    {"hw_counters", "rx_atomic_requests", kLaneRxAtomics, 3, -1},
    {"hw_counters", "duplicate_request", -1, 0, kSharedDuplicateRequest},
    {"hw_counters", "out_of_sequence", -1, 0, kSharedOutOfSequence},
    {"hw_counters", "out_of_seq_request", -1, 0, kSharedOutOfSequence},
    {"hw_counters", "out_of_buffer", -1, 0, kSharedOutOfBuffer},
    {"hw_counters", "send_rnr_err", -1, 0, kSharedSentRnr},
    {"hw_counters", "rcvd_rnr_err", -1, 0, kSharedReceivedRnr},
    {"hw_counters", "rnr_nak_retry_err", -1, 0, kSharedReceivedRnr},
    {"hw_counters", "packet_seq_err", -1, 0, kSharedSequenceNak},
    {"hw_counters", "rcvd_seq_err", -1, 0, kSharedSequenceNak},
    {"hw_counters", "implied_nak_seq_err", -1, 0, kSharedImpliedNak},
    {"hw_counters", "local_ack_timeout_err", -1, 0, kSharedAckTimeout},
    {"hw_counters", "completer_retry_err", -1, 0, kSharedResent},
    {"hw_counters", "roce_adp_retrans", -1, 0, kSharedProbes},
    {"hw_counters", "retry_exceeded_err", -1, 0, kSharedRetryExceeded},
    {"hw_counters", "retry_rnr_exceeded_err", -1, 0, kSharedRnrRetryExceeded},
    {"hw_counters", "req_cqe_error", -1, 0, kSharedRequestError},
    {"hw_counters", "req_cqe_flush_error", -1, 0, kSharedRequestFlush},
    {"hw_counters", "req_remote_access_errors", -1, 0, kSharedRequestRemoteAccess},
    {"hw_counters", "req_remote_invalid_request", -1, 0, kSharedRequestRemoteInvalid},
    {"hw_counters", "resp_cqe_error", -1, 0, kSharedReceiveError},
    {"hw_counters", "resp_cqe_flush_error", -1, 0, kSharedReceiveFlush},
    {"hw_counters", "resp_local_length_error", -1, 0, kSharedReceiveLength},
    {"hw_counters", "resp_remote_access_errors", -1, 0, kSharedReceiveAccess},
    {"hw_counters", "rx_icrc_encapsulated", -1, 0, kSharedWrongIcrc},
    {"hw_counters", "rx_drops", -1, 0, kSharedRcvDrops},
    {"hw_counters", "rx_pulled_sends", -1, 0, kSharedPulled},
    {"hw_counters", "link_downed", -1, 0, kSharedLinkDowned},
    {"hw_counters", "lifespan", -1, 0, -1},
};
#define RINGBOLT_COUNTERS (sizeof kRingboltCounters / sizeof kRingboltCounters[0])

/// The counter of that folder and name, or null. Points into a table that lives as long as the program.
static inline const struct RingboltCounter* ringbolt_find_counter(const char* folder, const char* name) {
  for (size_t i = 0; i < RINGBOLT_COUNTERS; ++i) {
    if (strcmp(kRingboltCounters[i].name, name) == 0 && strcmp(kRingboltCounters[i].folder, folder) == 0) {
      return &kRingboltCounters[i];
    }
  }
  return NULL;
}

/// Adds the block at `words`, RINGBOLT_COUNTER_BLOCK_BYTES long. `words` may not be a live mapping of another
/// process' block: this reads plain words, and only a copy taken through the kernel is free of races.
static inline void ringbolt_add_block(const uint64_t* words, struct RingboltCounterSum* sum) {
  for (size_t i = 0; i < RINGBOLT_COUNTER_SHARED_WORDS; ++i) {
    sum->shared[i] += words[RINGBOLT_COUNTER_SHARED_AT + i];
  }
  const uint64_t* lane = words + RINGBOLT_COUNTER_CELLS_AT;
  for (size_t i = 0; i < 2 * RINGBOLT_COUNTER_CELLS; ++i, lane += RINGBOLT_COUNTER_LANE_WORDS) {
    for (size_t word = 0; word < RINGBOLT_COUNTER_LANE_WORDS; ++word) {
      sum->lanes[i % 2][word] += lane[word];
    }
  }
}

/// The counter's value; wraps at 2^64.
static inline uint64_t ringbolt_counter_value(const struct RingboltCounter* counter,
                                              const struct RingboltCounterSum* sum) {
  uint64_t value = counter->shared_word < 0 ? 0 : sum->shared[counter->shared_word];
  for (unsigned lane = 0; counter->lane_word >= 0 && lane < 2; ++lane) {
    if ((counter->lanes >> lane & 1U) != 0) {
      value += sum->lanes[lane][counter->lane_word];
    }
  }
  return value;
}
