// Every state against everything that can happen in it. A cell says what is answered, what the user hears and the state
// after it; or that it is ignored, and by what its sender gets on. Two engines against each other: pair_test.cpp.

#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <string>

#include "cm/scripted_peer.h"

namespace ringbolt::cm {
namespace {

constexpr uint32_t kPeerSlot = 5;

enum class Cause : uint8_t { req, mra, rep, rtu, rej, dreq, drep, user_ends, user_destroys, peer_dies };

/// The states of the table: those of Engine, ESTABLISHED by side, and an id that nobody knows (any more).
enum class Row : uint8_t {
  unknown,
  req_sent,
  mra_req_received,
  rep_received,
  active_established,
  req_received,
  rep_sent,
  ending_rep_sent,  ///< its user has asked for the end
  mra_rep_received,
  passive_established,
  dreq_sent,
  dreq_received,
  timewait,
  idle,
};

struct Cell {
  Row row;
  Cause cause;
  std::string_view expected;  ///< "answers | events | state", or "ignored: why nobody waits for ever"
};

std::string_view name_of(State state) {
  constexpr std::string_view kNames[] = {
      "idle",     "req_sent",         "mra_req_received", "rep_received",   "req_received",
      "rep_sent", "mra_rep_received", "established",      "dreq_sent",      "dreq_received",
      "timewait", "lookup_sent",      "lookup_received",  "lookup_answered"};
  return kNames[static_cast<size_t>(state)];
}

std::string name_of(const wire::CmMessage& message) {
  constexpr std::string_view kNames[] = {"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP"};
  const auto* refusal = std::get_if<wire::CmRej>(&message);
  return refusal == nullptr ? std::string(kNames[message.index()]) : fmt::format("REJ {}", refusal->reason);
}

std::string name_of(const Event& event) {
  constexpr std::string_view kNames[] = {"request",      "response",      "established", "rejected",     "unreachable",
                                         "disconnected", "timewait_exit", "lookup",      "lookup_answer"};
  return std::string(kNames[static_cast<size_t>(event.kind)]);
}

/// One connection of a process of the same host, so that the peer's death can be heard of.
class Bench {
 public:
  ScriptedPeer peer;
  Handle handle = (kSeed.slot << 22) | 0x12345;

  explicit Bench(Row row) {
    enter(row);
    peer.engine.take_outgoing();
    peer.told();
  }

  template <class Message>
  void say(const Message& message) {
    Arrival arrival{peer.path(), kPeerSlot, {}};
    wire::emit(wire::CmMad{7, message}, arrival.bytes);
    peer.engine.receive(peer.now, arrival);
  }
  void happen(Cause cause) {
    switch (cause) {
      case Cause::req:
        return say(peer.request());
      case Cause::mra:
        return say(wire::CmMra{kPeerId, handle, is_active_ ? wire::CmAnswered::req : wire::CmAnswered::rep, 20, {}});
      case Cause::rep:
        return say(peer.reply_to(handle));
      case Cause::rtu:
        return say(wire::CmRtu{kPeerId, handle, {}});
      case Cause::rej:
        return say(refusal());
      case Cause::dreq:
        return say(peer.end_of(handle));
      case Cause::drep:
        return say(wire::CmDrep{kPeerId, handle, {}});
      case Cause::user_ends:
        static_cast<void>(peer.engine.disconnect(peer.now, handle));
        return;
      case Cause::user_destroys:
        return peer.engine.destroy(peer.now, handle);
      case Cause::peer_dies:
        peer.engine.on_peer_gone(peer.now, kPeerSlot);
        return peer.engine.on_timer(peer.now);
    }
  }
  /// What came of it: "answers | events | state".
  std::string outcome() {
    std::string answers;
    for (const auto& message : peer.heard()) {
      answers += (answers.empty() ? "" : ", ") + name_of(message);
    }
    std::string events;
    for (const Event& event : peer.told()) {
      events += (events.empty() ? "" : ", ") + name_of(event);
    }
    return fmt::format("{} | {} | {}", answers, events, name_of(peer.engine.state_of(handle)));
  }
  /// A state that waits for the peer, rather than for its user or for data, has a timer.
  bool waits_without_timer() const {
    switch (peer.engine.state_of(handle)) {
      case State::req_sent:
      case State::mra_req_received:
      case State::rep_sent:
      case State::mra_rep_received:
      case State::dreq_sent:
      case State::timewait:
        return peer.engine.next_deadline_ns() == UINT64_MAX;
      default:
        return false;
    }
  }

 private:
  wire::CmRej refusal() const {
    wire::CmRej message;
    message.local_id = kPeerId;
    message.remote_id = handle;
    const State state = peer.engine.state_of(handle);
    const bool is_early = state == State::req_sent || state == State::mra_req_received;
    message.answered = is_early ? wire::CmAnswered::req : wire::CmAnswered::other;
    message.reason = wire::kRejConsumer;
    return message;
  }
  void ask() {
    is_active_ = true;
    wire::CmReq request;
    request.service_id = kService;
    request.local_qpn = kOwnQpn;
    handle = peer.engine.connect(peer.now, peer.path(), request);
  }
  void be_asked() {
    peer.listen();
    say(peer.request());
    handle = peer.one_event(Event::Kind::request).handle;
  }
  void accept() {
    be_asked();
    wire::CmRep reply;
    reply.local_qpn = kOwnQpn;
    EXPECT_EQ(peer.engine.accept(peer.now, handle, reply), 0);
  }
  void connect_passively() {
    accept();
    happen(Cause::rtu);
  }
  void enter(Row row) {
    switch (row) {
      case Row::unknown:
        return;
      case Row::req_sent:
        return ask();
      case Row::mra_req_received:
        ask();
        return happen(Cause::mra);
      case Row::rep_received:
        ask();
        return happen(Cause::rep);
      case Row::active_established:
        ask();
        happen(Cause::rep);
        EXPECT_EQ(peer.engine.ready(peer.now, handle), 0);
        return;
      case Row::req_received:
        return be_asked();
      case Row::rep_sent:
        return accept();
      case Row::ending_rep_sent:
        accept();
        return happen(Cause::user_ends);
      case Row::mra_rep_received:
        accept();
        return happen(Cause::mra);
      case Row::passive_established:
        return connect_passively();
      case Row::dreq_sent:
        connect_passively();
        return happen(Cause::user_ends);
      case Row::dreq_received:
        connect_passively();
        return happen(Cause::dreq);
      case Row::timewait:
        connect_passively();
        happen(Cause::dreq);
        return happen(Cause::user_ends);
      case Row::idle:
        accept();
        return happen(Cause::rej);
    }
  }

  bool is_active_ = false;
};

// Why nobody waits for ever behind what is ignored.
constexpr std::string_view kRepeated = "ignored: its sender repeats it, and gives up by its own timer";
constexpr std::string_view kOneId = "ignored: a repetition; our own timer repeats what answers it";
constexpr std::string_view kKnown = "ignored: has taken effect already";
constexpr std::string_view kStray = "ignored: a message for the other side of a connection; its sender is none of ours";
constexpr std::string_view kPatient = "ignored: asks a timer for patience that does not run";
constexpr std::string_view kAnswer = "ignored: answers what was not asked; nobody waits behind it";
constexpr std::string_view kRefused = "ignored: EINVAL; the timer of the REQ or REP before it runs on";
constexpr std::string_view kLater = "ignored: until the RTU, for which our REP has a timer";
constexpr std::string_view kOver = "ignored: both have heard of the end";
constexpr std::string_view kNoSuch = "ignored: there is nothing to end";

constexpr Cell kTable[] = {
    {Row::unknown, Cause::req, "REJ 8 |  | idle"},
    {Row::unknown, Cause::mra, kAnswer},
    {Row::unknown, Cause::rep, kRepeated},
    {Row::unknown, Cause::rtu, "REJ 6 |  | idle"},
    {Row::unknown, Cause::rej, kOver},
    {Row::unknown, Cause::dreq, "DREP |  | idle"},
    {Row::unknown, Cause::drep, kOver},
    {Row::unknown, Cause::user_ends, kNoSuch},
    {Row::unknown, Cause::user_destroys, kNoSuch},
    {Row::unknown, Cause::peer_dies, kNoSuch},
    {Row::req_sent, Cause::req, "REJ 8 |  | req_sent"},
    {Row::req_sent, Cause::mra, " |  | mra_req_received"},
    {Row::req_sent, Cause::rep, " | response | rep_received"},
    {Row::req_sent, Cause::rtu, "REJ 6 |  | req_sent"},
    {Row::req_sent, Cause::rej, " | rejected | idle"},
    {Row::req_sent, Cause::dreq, "DREP |  | req_sent"},
    {Row::req_sent, Cause::drep, kAnswer},
    {Row::req_sent, Cause::user_ends, kRefused},
    {Row::req_sent, Cause::user_destroys, "REJ 4 |  | idle"},
    {Row::req_sent, Cause::peer_dies, "REQ |  | req_sent"},
    {Row::mra_req_received, Cause::req, "REJ 8 |  | mra_req_received"},
    {Row::mra_req_received, Cause::mra, kPatient},
    {Row::mra_req_received, Cause::rep, " | response | rep_received"},
    {Row::mra_req_received, Cause::rtu, "REJ 6 |  | mra_req_received"},
    {Row::mra_req_received, Cause::rej, " | rejected | idle"},
    {Row::mra_req_received, Cause::dreq, "DREP |  | mra_req_received"},
    {Row::mra_req_received, Cause::drep, kAnswer},
    {Row::mra_req_received, Cause::user_ends, kRefused},
    {Row::mra_req_received, Cause::user_destroys, "REJ 4 |  | idle"},
    {Row::mra_req_received, Cause::peer_dies, " | rejected | idle"},
    {Row::rep_received, Cause::req, kOneId},
    {Row::rep_received, Cause::mra, kPatient},
    {Row::rep_received, Cause::rep, "MRA |  | rep_received"},
    {Row::rep_received, Cause::rtu, kStray},
    {Row::rep_received, Cause::rej, " | rejected | timewait"},
    {Row::rep_received, Cause::dreq, " | disconnected | dreq_received"},
    {Row::rep_received, Cause::drep, kAnswer},
    {Row::rep_received, Cause::user_ends, kRefused},
    {Row::rep_received, Cause::user_destroys, "REJ 28 |  | idle"},
    {Row::rep_received, Cause::peer_dies, " | rejected | timewait"},
    {Row::active_established, Cause::req, kOneId},
    {Row::active_established, Cause::mra, kPatient},
    {Row::active_established, Cause::rep, "RTU |  | established"},
    {Row::active_established, Cause::rtu, kStray},
    {Row::active_established, Cause::rej, " | rejected | timewait"},
    {Row::active_established, Cause::dreq, " | disconnected | dreq_received"},
    {Row::active_established, Cause::drep, kAnswer},
    {Row::active_established, Cause::user_ends, "DREQ |  | dreq_sent"},
    {Row::active_established, Cause::user_destroys, "DREQ |  | timewait"},
    {Row::active_established, Cause::peer_dies, " | disconnected | timewait"},
    {Row::req_received, Cause::req, "MRA |  | req_received"},
    {Row::req_received, Cause::mra, kPatient},
    {Row::req_received, Cause::rep, kStray},
    {Row::req_received, Cause::rtu, kStray},
    {Row::req_received, Cause::rej, " |  | idle"},
    {Row::req_received, Cause::dreq, kRepeated},
    {Row::req_received, Cause::drep, kAnswer},
    {Row::req_received, Cause::user_ends, kRefused},
    {Row::req_received, Cause::user_destroys, "REJ 28 |  | idle"},
    {Row::req_received, Cause::peer_dies, " |  | idle"},
    {Row::rep_sent, Cause::req, kOneId},
    {Row::rep_sent, Cause::mra, " |  | mra_rep_received"},
    {Row::rep_sent, Cause::rep, kStray},
    {Row::rep_sent, Cause::rtu, " | established | established"},
    {Row::rep_sent, Cause::rej, " | rejected | idle"},
    {Row::rep_sent, Cause::dreq, " | disconnected | dreq_received"},
    {Row::rep_sent, Cause::drep, kAnswer},
    {Row::rep_sent, Cause::user_ends, kLater},
    {Row::rep_sent, Cause::user_destroys, "REJ 28 |  | idle"},
    {Row::rep_sent, Cause::peer_dies, " | rejected | idle"},
    {Row::ending_rep_sent, Cause::req, kOneId},
    {Row::ending_rep_sent, Cause::mra, " |  | mra_rep_received"},
    {Row::ending_rep_sent, Cause::rep, kStray},
    {Row::ending_rep_sent, Cause::rtu, "DREQ | established | dreq_sent"},
    {Row::ending_rep_sent, Cause::rej, " | rejected | idle"},
    {Row::ending_rep_sent, Cause::dreq, "DREP | disconnected | timewait"},
    {Row::ending_rep_sent, Cause::drep, kAnswer},
    {Row::ending_rep_sent, Cause::user_ends, kLater},
    {Row::ending_rep_sent, Cause::user_destroys, "REJ 28 |  | idle"},
    {Row::ending_rep_sent, Cause::peer_dies, " | rejected | idle"},
    {Row::mra_rep_received, Cause::req, kOneId},
    {Row::mra_rep_received, Cause::mra, kPatient},
    {Row::mra_rep_received, Cause::rep, kStray},
    {Row::mra_rep_received, Cause::rtu, " | established | established"},
    {Row::mra_rep_received, Cause::rej, " | rejected | idle"},
    {Row::mra_rep_received, Cause::dreq, " | disconnected | dreq_received"},
    {Row::mra_rep_received, Cause::drep, kAnswer},
    {Row::mra_rep_received, Cause::user_ends, kLater},
    {Row::mra_rep_received, Cause::user_destroys, "REJ 28 |  | idle"},
    {Row::mra_rep_received, Cause::peer_dies, " | rejected | idle"},
    {Row::passive_established, Cause::req, kOneId},
    {Row::passive_established, Cause::mra, kPatient},
    {Row::passive_established, Cause::rep, kStray},
    {Row::passive_established, Cause::rtu, kKnown},
    {Row::passive_established, Cause::rej, " | rejected | timewait"},
    {Row::passive_established, Cause::dreq, " | disconnected | dreq_received"},
    {Row::passive_established, Cause::drep, kAnswer},
    {Row::passive_established, Cause::user_ends, "DREQ |  | dreq_sent"},
    {Row::passive_established, Cause::user_destroys, "DREQ |  | timewait"},
    {Row::passive_established, Cause::peer_dies, " | disconnected | timewait"},
    {Row::dreq_sent, Cause::req, kOneId},
    {Row::dreq_sent, Cause::mra, kPatient},
    {Row::dreq_sent, Cause::rep, kStray},
    {Row::dreq_sent, Cause::rtu, kKnown},
    {Row::dreq_sent, Cause::rej, " | rejected | timewait"},
    {Row::dreq_sent, Cause::dreq, "DREP | disconnected | timewait"},
    {Row::dreq_sent, Cause::drep, " | disconnected | timewait"},
    {Row::dreq_sent, Cause::user_ends, kKnown},
    {Row::dreq_sent, Cause::user_destroys, " |  | timewait"},
    {Row::dreq_sent, Cause::peer_dies, " | disconnected | timewait"},
    {Row::dreq_received, Cause::req, kOneId},
    {Row::dreq_received, Cause::mra, kPatient},
    {Row::dreq_received, Cause::rep, kStray},
    {Row::dreq_received, Cause::rtu, kKnown},
    {Row::dreq_received, Cause::rej, kOver},
    {Row::dreq_received, Cause::dreq, kRepeated},
    {Row::dreq_received, Cause::drep, " |  | timewait"},
    {Row::dreq_received, Cause::user_ends, "DREP |  | timewait"},
    {Row::dreq_received, Cause::user_destroys, "DREP |  | timewait"},
    {Row::dreq_received, Cause::peer_dies, kOver},
    {Row::timewait, Cause::req, " | request | timewait"},
    {Row::timewait, Cause::mra, kPatient},
    {Row::timewait, Cause::rep, kStray},
    {Row::timewait, Cause::rtu, kOver},
    {Row::timewait, Cause::rej, kOver},
    {Row::timewait, Cause::dreq, "DREP |  | timewait"},
    {Row::timewait, Cause::drep, kOver},
    {Row::timewait, Cause::user_ends, kOver},
    {Row::timewait, Cause::user_destroys, kOver},
    {Row::timewait, Cause::peer_dies, kOver},
    {Row::idle, Cause::req, " | request | idle"},
    {Row::idle, Cause::mra, kPatient},
    {Row::idle, Cause::rep, kStray},
    {Row::idle, Cause::rtu, "REJ 6 |  | idle"},
    {Row::idle, Cause::rej, kOver},
    {Row::idle, Cause::dreq, "DREP |  | idle"},
    {Row::idle, Cause::drep, kOver},
    {Row::idle, Cause::user_ends, kNoSuch},
    {Row::idle, Cause::user_destroys, kNoSuch},
    {Row::idle, Cause::peer_dies, kOver},
};

TEST(CmTable, answers_tells_or_has_a_reason_to_ignore) {
  for (const Cell& cell : kTable) {
    Bench bench(cell.row);
    const State before = bench.peer.engine.state_of(bench.handle);
    bench.happen(cell.cause);
    const std::string seen = bench.outcome();
    const bool is_ignored = cell.expected.starts_with("ignored: ");
    EXPECT_EQ(seen, is_ignored ? fmt::format(" |  | {}", name_of(before)) : cell.expected)
        << "row " << static_cast<int>(cell.row) << " (" << name_of(before) << "), cause "
        << static_cast<int>(cell.cause);
    EXPECT_FALSE(bench.waits_without_timer()) << seen;
  }
}

TEST(CmTable, has_every_cell_once) {
  std::map<std::pair<Row, Cause>, int> count;
  for (const Cell& cell : kTable) {
    ++count[{cell.row, cell.cause}];
  }
  const size_t rows = static_cast<size_t>(Row::idle) + 1;
  const size_t causes = static_cast<size_t>(Cause::peer_dies) + 1;
  EXPECT_EQ(count.size(), rows * causes);
  EXPECT_EQ(std::size(kTable), rows * causes);
}

}  // namespace
}  // namespace ringbolt::cm
