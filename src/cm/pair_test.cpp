// Two engines and what a network may do between them: every order in which messages arrive and users act, and every
// message lost once. Whatever happens, a user who keeps his connection hears of its end.

#include <algorithm>
#include <cerrno>
#include <deque>
#include <ostream>
#include <string>
#include <vector>

#include "cm/scripted_peer.h"

namespace ringbolt::cm {
namespace {

constexpr wire::Address kAddresses[] = {kOwnAddress, kPeerAddress};
constexpr size_t kServer = 0;
constexpr size_t kClient = 1;

enum class Act : uint8_t { accept, reject, disconnect, destroy };

struct End final : Host {
  explicit End(size_t at) : side(at) {}
  uint64_t guid(uint32_t) const override { return 0x1000 + side; }
  wire::Address first_gid(uint32_t) const override { return kAddresses[side]; }
  bool owns_gid(uint32_t, const wire::Address& gid) const override { return gid == kAddresses[side]; }
  bool is_local(uint32_t, const wire::Address& address) const override { return address == kAddresses[side]; }
  bool routes_back(uint32_t, const wire::Address&, const wire::Address&) const override { return true; }

  const size_t side;
  Engine engine{{static_cast<uint32_t>(side + 1), 0x55}, *this};
  Handle handle = 0;
  bool has_ended = false;     ///< its user has heard so, or has let go
  bool has_answered = false;  ///< the client: it believes itself connected
  std::deque<Act> script{};   ///< what its user will do
  bool will_destroy() const { return std::ranges::find(plan, Act::destroy) != plan.end(); }
  std::deque<Act> plan{};
};

/// Decides: at each question the next number of a list, and 0 beyond it; notes how many answers there were.
struct Choices {
  std::vector<size_t> taken;
  std::vector<size_t> limits;
  size_t next = 0;

  size_t among(size_t count) {
    if (next == taken.size()) {
      taken.push_back(0);
      limits.push_back(count);
    }
    limits[next] = count;
    return taken[next++];
  }
  /// The list after this one; false after the last.
  bool advance() {
    taken.resize(next);
    limits.resize(next);
    while (!taken.empty() && taken.back() + 1 == limits.back()) {
      taken.pop_back();
      limits.pop_back();
    }
    next = 0;
    if (taken.empty()) {
      return false;
    }
    ++taken.back();
    return true;
  }
};

class Meeting {
 public:
  Meeting(Choices& choices, const std::deque<Act>& server, const std::deque<Act>& client, bool may_lose)
      : choices_(choices), may_lose_(may_lose) {
    ends_[kServer].script = ends_[kServer].plan = server;
    ends_[kClient].script = ends_[kClient].plan = client;
    Listener listener;
    listener.cookie = 1;
    listener.service_id = kService;
    listener.is_ipv4 = true;
    ends_[kServer].engine.listen(listener);
    wire::CmReq request;
    request.service_id = kService;
    request.local_guid = ends_[kClient].guid(0);
    request.local_qpn = 0x12;
    request.primary.local_gid = kAddresses[kClient];
    request.primary.remote_gid = kAddresses[kServer];
    request.primary.ack_timeout = 19;
    wire::emit(wire::CmIpHeader{36277, kAddresses[kClient], kAddresses[kServer]},
               std::span(request.private_data).first<wire::kCmIpHeaderBytes>());
    ends_[kClient].handle = ends_[kClient].engine.connect(now_, path_from(kClient), request);
    collect();
  }

  /// Both users have ended it or know of its end. What happened is in `story`.
  bool comes_to_an_end() {
    while (step()) {
    }
    constexpr int kMaxTimers = 400;  // each of a handful of messages is tried 16 times
    for (int i = 0; i < kMaxTimers && wake(); ++i) {
      while (step()) {
      }
    }
    return (ends_[kServer].has_ended || ends_[kServer].handle == 0) && ends_[kClient].has_ended;
  }
  std::string story;

 private:
  static Path path_from(size_t side) { return {0, kAddresses[side], kAddresses[1 - side], 0, 0, 64}; }

  void collect() {
    for (End& end : ends_) {
      for (const Outgoing& out : end.engine.take_outgoing()) {
        flying_.push_back({1 - end.side, out});
      }
    }
  }
  bool can_act(const End& end) const {
    if (end.script.empty() || end.handle == 0) {
      return false;
    }
    return end.side == kServer || end.script.front() == Act::destroy || end.has_answered;
  }

  /// One thing happens; false when nothing can but what timers do.
  bool step() {
    enum : size_t { server_acts, client_acts, client_answers, first_message };
    std::vector<size_t> ways;
    for (const End& end : ends_) {
      if (can_act(end)) {
        ways.push_back(end.side == kServer ? server_acts : client_acts);
      }
    }
    if (must_answer_) {
      ways.push_back(client_answers);
    }
    for (size_t i = 0; i < flying_.size(); ++i) {
      ways.push_back(first_message + i);
    }
    if (ways.empty()) {
      return false;
    }
    const size_t way = ways[ways.size() == 1 ? 0 : choices_.among(ways.size())];
    if (way == client_answers) {
      answer();
    } else if (way < first_message) {
      act(ends_[way == server_acts ? kServer : kClient]);
    } else {
      arrive(way - first_message);
    }
    collect();
    return true;
  }

  void arrive(size_t which) {
    const auto [to, out] = flying_[which];
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
    const auto mad = wire::parse_cm(out.bytes);
    // rdma_destroy_id sends its DREQ once, as a kernel does, and stops the repetition of an earlier one.
    const bool is_last_word = std::holds_alternative<wire::CmDreq>(mad->message) && ends_[1 - to].will_destroy();
    if (may_lose_ && !has_lost_ && !is_last_word && choices_.among(2) == 1) {
      has_lost_ = true;
      story += " lost" + std::to_string(mad->message.index());
      return;
    }
    story += (to == kServer ? " >" : " <") + std::to_string(mad->message.index());
    ends_[to].engine.receive(now_, {path_from(to), kNoSlot, out.bytes});
    hear(ends_[to]);
  }

  void hear(End& end) {
    for (const Event& event : end.engine.take_events()) {
      story += " " + std::to_string(end.side) + "!" + std::to_string(static_cast<int>(event.kind));
      if (event.kind == Event::Kind::request && end.handle == 0) {
        end.handle = event.handle;
      } else if (event.kind == Event::Kind::request) {  // asked again after all is over: nobody serves any more
        end.engine.destroy(now_, event.handle);
      } else if (event.kind == Event::Kind::response) {
        must_answer_ = true;
      } else if (event.kind != Event::Kind::established) {
        end.has_ended = true;
        static_cast<void>(end.engine.disconnect(now_, end.handle));  // agrees
      }
    }
  }

  void act(End& end) {
    const Act act = end.script.front();
    end.script.pop_front();
    story += " " + std::to_string(end.side) + "act" + std::to_string(static_cast<int>(act));
    wire::CmRep reply;
    reply.local_qpn = 0x13;
    reply.local_guid = end.guid(0);
    switch (act) {
      case Act::accept:
        end.has_ended = end.engine.accept(now_, end.handle, reply) != 0;
        break;
      case Act::reject:
        // Too late for it after the RTU; with neither possible he knows that it is over.
        end.has_ended = end.engine.reject(now_, end.handle, wire::kRejConsumer, {}) == 0 ||
                        end.engine.disconnect(now_, end.handle) != 0 || end.has_ended;
        break;
      case Act::disconnect:
        static_cast<void>(end.engine.disconnect(now_, end.handle));
        break;
      case Act::destroy:
        end.engine.destroy(now_, end.handle);
        end.has_ended = true;
        must_answer_ = must_answer_ && end.side == kServer;
        break;
    }
    hear(end);
  }

  /// The client's user takes the response.
  void answer() {
    must_answer_ = false;
    story += " ready";
    End& client = ends_[kClient];
    client.has_answered = true;
    client.has_ended = client.engine.ready(now_, client.handle) != 0 || client.has_ended;
  }

  /// The next timer runs out; false when none runs.
  bool wake() {
    const uint64_t next = std::min(ends_[0].engine.next_deadline_ns(), ends_[1].engine.next_deadline_ns());
    if (next == UINT64_MAX) {
      return false;
    }
    now_ = next;
    for (End& end : ends_) {
      end.engine.on_timer(now_);
      hear(end);
    }
    collect();
    return true;
  }

  struct Flying {
    size_t to;
    Outgoing out;
  };
  Choices& choices_;
  const bool may_lose_;
  bool has_lost_ = false;
  bool must_answer_ = false;
  uint64_t now_ = 1'000'000'000;
  End ends_[2]{End(kServer), End(kClient)};
  std::vector<Flying> flying_;
};

std::string name_of(const std::deque<Act>& script) {
  constexpr const char* kNames[] = {"accept", "reject", "disconnect", "destroy"};
  std::string name;
  for (const Act act : script) {
    name += (name.empty() ? "" : "_") + std::string(kNames[static_cast<size_t>(act)]);
  }
  return name.empty() ? "keep" : name;
}

/// What either user does, in this order. Printed by name: test names hold no raw bytes.
struct Users {
  std::deque<Act> server;
  std::deque<Act> client;
  std::string name() const { return name_of(server) + "_against_" + name_of(client); }
  friend void PrintTo(const Users& users, std::ostream* out) { *out << users.name(); }
};

const std::vector<std::deque<Act>> kServers = {
    {Act::accept},
    {Act::accept, Act::disconnect},
    {Act::accept, Act::disconnect, Act::destroy},
    {Act::accept, Act::destroy},
    {Act::accept, Act::reject},
    {Act::reject},
    {Act::destroy},
};
const std::vector<std::deque<Act>> kClients = {{}, {Act::disconnect}, {Act::disconnect, Act::destroy}, {Act::destroy}};

std::vector<Users> all_users() {
  std::vector<Users> all;
  for (const auto& server : kServers) {
    for (const auto& client : kClients) {
      all.push_back({server, client});
    }
  }
  all.erase(all.begin());  // accept against keep: nobody wants an end
  return all;
}

class CmPair : public testing::TestWithParam<Users> {
 protected:
  void explore(bool may_lose) {
    const auto& [server, client] = GetParam();
    Choices choices;
    size_t count = 0;
    do {
      Meeting meeting(choices, server, client, may_lose);
      ASSERT_TRUE(meeting.comes_to_an_end()) << "meeting " << count << ":" << meeting.story;
      ++count;
    } while (choices.advance());
    RecordProperty("meetings", static_cast<int>(count));
  }
};

TEST_P(CmPair, whoever_keeps_it_hears_of_the_end) { explore(false); }
TEST_P(CmPair, a_lost_message_changes_nothing) { explore(true); }

INSTANTIATE_TEST_SUITE_P(All, CmPair, testing::ValuesIn(all_users()), [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace ringbolt::cm
