#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/explain.h"
#include "device/peer_notes.h"
#include "device/queue_pair_core.h"

/// What is known where a work request fails, kept until its completion tells the program, and told then. All of these
/// are called only where the queue pair has notes (QueuePairCore::when_noting()), and may throw std::bad_alloc.
namespace ringbolt::device {

struct Connection;

/// Local memory: the first of the pieces whose key does not allow `access`.
base::Explanation why_pieces_refused(const QueuePairCore& core, std::span<const ibv_sge> pieces, uint32_t access);
/// A receive ends: the message has `total` bytes (`at_least`: so far), and it is too short, or its keys are wrong.
/// Tells the peer, too.
void note_failed_receive(const QueuePairCore& core, ibv_wc_status status, std::span<const ibv_sge> pieces,
                         uint64_t room, uint64_t total, bool is_at_least);
/// A request of the peer's is refused here: why, on standard error, and for the peer. `length` in bytes.
void explain_refused_request(const QueuePairCore& core, ibv_wc_status status, uint32_t key, uint64_t address,
                             uint64_t length, uint32_t access);
/// The peer has refused, by itself, what it asked of our memory.
void explain_refusal_by_peer(const QueuePairCore& core, ibv_wc_status status);
/// The peer has sent a key to invalidate that it may not.
void note_refused_invalidation(const QueuePairCore& core, uint32_t key);
/// Over a lane the requester decides itself, by the peer's table of regions.
base::Explanation why_access_failed(const QueuePairCore& core, const Connection& connection,
                                    const QueuePairNotes::Send& send, ibv_wc_status status);
/// A receive is awaited by a message, and there is none.
void note_starved(const QueuePairCore& core, QueuePairNotes& notes, uint32_t posted) RINGBOLT_REQUIRES(receive_half);
/// "0 receives are posted; ...", of the queue pair's own queue or the shared one.
std::string receives_text(const QueuePairCore& core, uint32_t posted) RINGBOLT_REQUIRES(receive_half);
/// No answer came for `waited_ns`; 0: nobody has looked how long. `what`: what is known of the peer; may be empty.
base::Explanation why_unanswered(const QueuePairCore& core, uint64_t waited_ns, const std::string& what);

void explain_failed_send(const QueuePairCore& core, uint32_t place, ibv_wc_status status) RINGBOLT_REQUIRES(send_half);
void explain_failed_receive(const QueuePairCore& core, const NotedReceive& receive, ibv_wc_status status);
/// A send waits for a receive of the peer's for ever; told, and true, if the peer has said that it has none.
bool explain_starved_send(const QueuePairCore& core, uint32_t place) RINGBOLT_REQUIRES(send_half);
/// A datagram, or a message of UC, is lost here. `from`: "queue pair 0x12 of fe80::1".
void explain_dropped(const QueuePairCore& core, const std::string& from, base::Explanation why);

/// For the other side of the connection, from this one.
void tell_peer(const QueuePairCore& core, PeerNotes::Kind kind, std::string text);
/// What it told us of that kind since then.
std::optional<PeerNotes::Note> peer_note(const QueuePairCore& core, PeerNotes::Kind kind, uint64_t since_ns);
/// The same, since that send was posted.
std::optional<PeerNotes::Note> peer_note_of(const QueuePairCore& core, const QueuePairNotes::Send& send,
                                            PeerNotes::Kind kind);
/// "queue pair 0x12 of process 4711".
std::string peer_text(const QueuePairCore& core);

}  // namespace ringbolt::device
