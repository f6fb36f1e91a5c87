#include "device/failure_notes.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/connection.h"
#include "device/explanations.h"
#include "device/failures.h"
#include "device/limits.h"
#include "device/packet_sizes.h"

namespace ringbolt::device {
namespace {

using NoteKind = PeerNotes::Kind;

constexpr uint64_t kEver = 0;

std::optional<PeerNotes::Note> gone_region(const QueuePairCore& core, uint32_t key, pid_t owner) {
  return core.process.peer_notes()->find([key, owner](const PeerNotes::Note& note) {
    return note.kind == NoteKind::region_gone && note.number == key && note.pid == owner;
  });
}

std::optional<link::Region> own_region(const QueuePairCore& core, uint32_t key) {
  link::Region region;
  return core.process.regions().find(key, region) ? std::optional(region) : std::nullopt;
}

/// Of memory of this process.
base::Explanation why_own_key_refused(const QueuePairCore& core, KeyUse use) {
  use.pd_key = core.pd.key;
  use.qpn = core.qpn;
  use.owner = ::getpid();
  use.is_of_peer = false;
  const auto found = own_region(core, use.key);
  return why_key_refused(use, found, found ? std::nullopt : gone_region(core, use.key, use.owner), false,
                         own_region(core, __builtin_bswap32(use.key)).has_value());
}

uint32_t access_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_READ:
      return IBV_ACCESS_REMOTE_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_ACCESS_REMOTE_ATOMIC;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_ACCESS_REMOTE_WRITE;
    default:
      return 0;
  }
}

bool is_of_peer(const QueuePairCore& core, const PeerNotes::Note& note, NoteKind kind) {
  return note.kind == kind && note.number == core.attributes.dest_qp_num && note.peer_number == core.qpn &&
         core.port->owns(note.peer_gid);
}

std::string qp_text(const QueuePairCore& core) { return fmt::format("queue pair {:#x}", core.qpn); }

/// Both ends of the connection, as far as this one knows them.
base::Explanation why_flushed(const std::string& ended_by) {
  return {"flushed: " + ended_by,
          "look at that first; then reset the queue pair, or make a new one, and connect again"};
}

std::string flags_missing(const QueuePairCore& core, uint32_t access) {
  return access_text(access & ~core.attributes.qp_access_flags);
}

/// What a failed send completes with when nobody has said more.
base::Explanation why_send_failed(const QueuePairCore& core, const QueuePairNotes::Send& send, ibv_wc_status status) {
  std::string asked = fmt::format("{} bytes", send.length);
  if (access_of(send.opcode()) != 0) {
    asked += fmt::format(", rkey {:#x}, address {:#x}", send.key, send.address);
  }
  switch (status) {
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return {
          fmt::format("{} refused it, posted {}: {}", peer_text(core), age_text(core.notes->posted_ns(send)), asked),
          remedy_of(status)};
    case IBV_WC_LOC_LEN_ERR:
      return {fmt::format("it has {} bytes; the port takes messages of {}, datagrams of {}, atomics of 8", send.length,
                          kMaxMessageBytes, mtu_bytes(core.port->mtu)),
              "send it in parts"};
    default:
      return {fmt::format("it had {}, and was posted {}", asked, age_text(core.notes->posted_ns(send))),
              remedy_of(status)};
  }
}

}  // namespace

std::string peer_text(const QueuePairCore& core) {
  const auto made = peer_note(core, NoteKind::queue_pair_made, kEver);
  return fmt::format("queue pair {:#x} of {}", core.attributes.dest_qp_num,
                     made ? fmt::format("process {}", made->pid) : text_of(core.attributes.ah_attr.grh.dgid));
}

void tell_peer(const QueuePairCore& core, NoteKind kind, std::string text) {
  PeerNotes::Note note;
  note.kind = kind;
  note.number = core.qpn;
  note.peer_number = core.attributes.dest_qp_num;
  note.peer_gid = core.attributes.ah_attr.grh.dgid;
  note.text = std::move(text);
  core.process.peer_notes()->write(note);
}

std::optional<PeerNotes::Note> peer_note(const QueuePairCore& core, NoteKind kind, uint64_t since_ns) {
  return core.process.peer_notes()->find(
      [&](const PeerNotes::Note& note) { return is_of_peer(core, note, kind) && note.time_ns >= since_ns; });
}

std::optional<PeerNotes::Note> peer_note_of(const QueuePairCore& core, const QueuePairNotes::Send& send,
                                            NoteKind kind) {
  const PeerNotes& notes = *core.process.peer_notes();
  const uint64_t count = notes.count();
  const uint32_t newer = static_cast<uint32_t>(count) - send.peer_notes;
  return notes.find([&](const PeerNotes::Note& note) { return is_of_peer(core, note, kind); }, count - newer);
}

base::Explanation why_pieces_refused(const QueuePairCore& core, std::span<const ibv_sge> pieces, uint32_t access) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    link::RegionTableView::Place place;
    const ibv_sge& piece = pieces[i];
    if (piece.length == 0 || core.process.regions().locate(piece.lkey, core.pd.key, link::kAnyQueuePair, access,
                                                           piece.addr, piece.length, place)) {
      continue;
    }
    KeyUse use;
    use.name = "lkey";
    use.key = piece.lkey;
    use.address = piece.addr;
    use.length = piece.length;
    use.access = access;
    base::Explanation why = why_own_key_refused(core, use);
    if (pieces.size() > 1) {
      why.why = fmt::format("sg_list[{}]: {}", i, why.why);
    }
    return why;
  }
  return {fmt::format("a key of its {} pieces did not allow it then, and does now", pieces.size()),
          "register memory before the request that names it is posted"};
}

void note_failed_receive(const QueuePairCore& core, ibv_wc_status status, std::span<const ibv_sge> pieces,
                         uint64_t room, uint64_t total, bool is_at_least) {
  base::Explanation why;
  if (status == IBV_WC_LOC_LEN_ERR && total <= room) {
    why = why_fault(fmt::format("or the profile: a message of {} bytes into a receive of {}", total, room));
  } else if (status == IBV_WC_LOC_PROT_ERR) {
    why = why_pieces_refused(core, pieces, IBV_ACCESS_LOCAL_WRITE);
  } else {
    const bool has_grh = core.type == IBV_QPT_UD;
    why = {fmt::format("the message has {}{} bytes, and the receive {}{}", is_at_least ? "at least " : "", total, room,
                       has_grh ? ", of which a datagram's header takes 40" : ""),
           has_grh ? "post receives of 40 bytes more than the longest datagram"
                   : "post receives as long as the longest message, or have the peer send less"};
  }
  if (core.type != IBV_QPT_UD) {
    tell_peer(core, NoteKind::refused, why.why);
  }
  core.notes->say_why_receive(std::move(why));
}

void explain_refused_request(const QueuePairCore& core, ibv_wc_status status, uint32_t key, uint64_t address,
                             uint64_t length, uint32_t access) {
  base::Explanation why;
  if ((core.attributes.qp_access_flags & access) != access) {
    why = {fmt::format("{} has qp_access_flags {}, without {}", qp_text(core),
                       access_text(core.attributes.qp_access_flags), flags_missing(core, access)),
           "set them with ibv_modify_qp to INIT or later"};
  } else if (status == IBV_WC_REM_INV_REQ_ERR) {
    why = {fmt::format("an atomic of 8 bytes at {:#x}, which is not a multiple of 8", address),
           "give atomics an address that is a multiple of 8"};
  } else {
    KeyUse use;
    use.key = key;
    use.address = address;
    use.length = length;
    use.access = access;
    why = why_own_key_refused(core, use);
  }
  if (core.type == IBV_QPT_UC) {
    return explain_dropped(core, peer_text(core), std::move(why));
  }
  tell_peer(core, NoteKind::refused, why.why);
  core.notes->say_ended(fmt::format("a request of the peer was refused with {}: {}", text_of(status), why.why));
  base::Incident incident;
  incident.call = "request of the peer";
  incident.object = qp_text(core);
  incident.detail = "from " + peer_text(core);
  incident.status = text_of(status);
  base::explain(incident, why);
}

void explain_refusal_by_peer(const QueuePairCore& core, ibv_wc_status status) {
  const auto note = peer_note(core, NoteKind::refused, kEver);
  const std::string what = note ? note->text : "a request of its needed what this side does not allow";
  core.notes->say_ended(fmt::format("a request of the peer was refused with {}: {}", text_of(status), what));
  base::Incident incident;
  incident.call = "request of the peer";
  incident.object = qp_text(core);
  incident.detail = "from " + peer_text(core);
  incident.status = text_of(status);
  base::explain(incident,
                {what, status == IBV_WC_REM_ACCESS_ERR
                           ? "tell the peer a key, an address and a length of memory that is registered for this"
                           : "set qp_access_flags for what the peer does, and give it multiples of 8 for atomics"});
}

void note_refused_invalidation(const QueuePairCore& core, uint32_t key) {
  const std::string why = fmt::format(
      "a SEND with invalidate named {:#x}, which is no key of a memory window of type 2 that "
      "is bound on {}",
      key, qp_text(core));
  tell_peer(core, NoteKind::refused, why);
  core.notes->say_why_receive({why, "send the rkey that the window was bound with, once"});
  core.notes->say_ended(why);
}

base::Explanation why_access_failed(const QueuePairCore& core, const Connection& connection,
                                    const QueuePairNotes::Send& send, ibv_wc_status status) {
  const uint32_t access = access_of(send.opcode());
  const link::RemoteProcess& remote = *connection.remote;
  base::Explanation why;
  std::string for_peer;
  if (status == IBV_WC_REM_INV_REQ_ERR) {
    const uint32_t allowed = connection.sender->remote_access();
    why = (allowed & access) != access
              ? base::Explanation{fmt::format("queue pair {:#x} has qp_access_flags {}, without {}",
                                              connection.remote_qpn, access_text(allowed),
                                              access_text(access & ~allowed)),
                                  "have the peer set them with ibv_modify_qp to INIT"}
              : base::Explanation{
                    fmt::format("an atomic of 8 bytes at {:#x}, which is not a multiple of 8", send.address),
                    "give atomics an address that is a multiple of 8"};
  } else {
    KeyUse use;
    use.key = send.key;
    use.address = send.address;
    use.length = send.length;
    use.access = access;
    use.pd_key = connection.remote_pd_key;
    use.qpn = connection.remote_qpn;
    use.owner = remote.peer().pid();
    link::Region region;
    const auto found = remote.find_region(use.key, region) ? std::optional(region) : std::nullopt;
    link::Region reversed;
    const auto gone = found ? std::nullopt : gone_region(core, use.key, use.owner);
    const bool is_reversed = remote.find_region(__builtin_bswap32(use.key), reversed);
    why = why_key_refused(use, found, gone, own_region(core, use.key).has_value(), is_reversed);
    use.is_of_peer = false;
    for_peer = why_key_refused(use, found, gone, false, is_reversed).why;
  }
  tell_peer(core, NoteKind::refused, for_peer.empty() ? why.why : for_peer);
  return why;
}

std::string receives_text(const QueuePairCore& core, uint32_t posted) {
  return core.queues.shared != nullptr
             ? fmt::format("{} receives are in the shared receive queue", core.queues.shared->count())
             : core.notes->receives_text(posted);
}

void note_starved(const QueuePairCore& core, QueuePairNotes& notes, uint32_t posted) {
  if (notes.note_starved(base::now_ns())) {
    tell_peer(core, NoteKind::starved, receives_text(core, posted));
  }
}

base::Explanation why_unanswered(const QueuePairCore& core, uint64_t waited_ns, const std::string& what) {
  const ibv_qp_attr& attributes = core.attributes;
  base::Explanation why{fmt::format("no answer of {}{} (timeout {}, retry_cnt {}){}", peer_text(core),
                                    waited_ns == 0 ? "" : fmt::format(" for {} ms", waited_ns / 1'000'000),
                                    attributes.timeout, attributes.retry_cnt, what.empty() ? "" : ": " + what),
                        remedy_of(IBV_WC_RETRY_EXC_ERR)};
  const auto made = peer_note(core, NoteKind::queue_pair_made, kEver);
  if (const auto gone = peer_note(core, NoteKind::queue_pair_gone, made ? made->time_ns : kEver)) {
    why.peer = fmt::format("{}, {}", gone->text, age_text(gone->time_ns));
    why.fix = "keep the peer's queue pair until everything that is sent to it has completed";
  } else if (made && ::kill(made->pid, 0) != 0 && errno == ESRCH) {
    why.peer = fmt::format("process {}, which had it, is not there any more", made->pid);
    why.fix = "see why the peer's process ended, and connect anew";
  }
  return why;
}

void explain_failed_send(const QueuePairCore& core, uint32_t place, ibv_wc_status status) {
  QueuePairNotes& notes = *core.notes;
  const QueuePairNotes::Send& send = notes.send(place);
  base::Incident incident;
  incident.call = opcode_text(send.opcode());
  incident.object = qp_text(core);
  incident.detail = fmt::format("wr_id {}", send.wr_id);
  incident.status = text_of(status);
  incident.posted = send.site;
  if (status == IBV_WC_WR_FLUSH_ERR) {
    if (const std::string ended_by = notes.take_ended(); !ended_by.empty()) {
      base::explain(incident, why_flushed(ended_by));
    }
    return;
  }
  auto said = notes.take_why_send();
  base::Explanation why = said ? std::move(*said) : why_send_failed(core, send, status);
  const auto kind = status == IBV_WC_RNR_RETRY_EXC_ERR ? NoteKind::starved : NoteKind::refused;
  const bool is_refused =
      status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_OP_ERR;
  if (const auto note = kind == NoteKind::starved ? peer_note(core, kind, kEver) : peer_note_of(core, send, kind);
      note && why.peer.empty() && (is_refused || kind == NoteKind::starved)) {
    why.peer = fmt::format("{} (process {}, {})", note->text, note->pid, age_text(note->time_ns));
  }
  notes.say_ended(fmt::format("wr_id {}, an {} that was posted at {}, has failed with {}", send.wr_id, incident.call,
                              base::place_of(send.site), incident.status));
  base::explain(incident, why);
}

void explain_failed_receive(const QueuePairCore& core, const NotedReceive& receive, ibv_wc_status status) {
  QueuePairNotes& notes = *core.notes;
  base::Incident incident;
  incident.call = "receive";
  incident.object = qp_text(core);
  incident.detail = fmt::format("wr_id {}", receive.wr_id);
  incident.status = text_of(status);
  incident.posted = receive.site;
  if (status == IBV_WC_WR_FLUSH_ERR) {
    if (const std::string ended_by = notes.take_ended(); !ended_by.empty()) {
      base::explain(incident, why_flushed(ended_by));
    }
    return;
  }
  auto said = notes.take_why_receive();
  const base::Explanation why = said ? std::move(*said)
                                     : base::Explanation{fmt::format("{} could not be read: {}", peer_text(core),
                                                                     "its memory is gone, or closed to us"),
                                                         remedy_of(status)};
  notes.say_ended(
      fmt::format("the receive with wr_id {} has failed with {}: {}", receive.wr_id, incident.status, why.why));
  base::explain(incident, why);
}

bool explain_starved_send(const QueuePairCore& core, uint32_t place) {
  const QueuePairNotes::Send& send = core.notes->send(place);
  const auto note = peer_note_of(core, send, NoteKind::starved);
  constexpr uint8_t kForever = 7;
  if (!note || core.attributes.rnr_retry != kForever) {
    return false;
  }
  base::Incident incident;
  incident.call = opcode_text(send.opcode());
  incident.object = qp_text(core);
  incident.detail = fmt::format("wr_id {}", send.wr_id);
  incident.status = "waits for a receive of the peer";
  incident.posted = send.site;
  base::explain(
      incident,
      {fmt::format("it was posted {}, and {} has no receive for it; rnr_retry is 7, which waits for ever",
                   age_text(core.notes->posted_ns(send)), peer_text(core)),
       "post receives at the peer before it is sent to", fmt::format("{} (process {})", note->text, note->pid)});
  return true;
}

void explain_dropped(const QueuePairCore& core, const std::string& from, base::Explanation why) {
  base::Incident incident;
  incident.call = core.type == IBV_QPT_UD ? "datagram" : "message";
  incident.object = qp_text(core);
  incident.detail = "from " + from;
  incident.status = "dropped";
  base::explain(incident, why);
}

}  // namespace ringbolt::device
