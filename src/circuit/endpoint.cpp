#include "circuit/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "base/start_thread.h"
#include "bootstrap/authenticator.h"
#include "bringup/survey.h"
#include "membership/addresses.h"

namespace ringbolt::circuit {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
// How often circuits are moved on whose program does not ask, and how late a task of nobody's can be. Times below in
// ns of the monotonic clock.
constexpr uint64_t kTickNs = 20 * kMillisecond;
// While something is being made or wound up.
constexpr uint64_t kRestlessNs = kMillisecond / 2;
// How often the ports are asked for their state: a system call or two each.
constexpr uint64_t kLookNs = 50 * kMillisecond;
// A device that has not answered by then is stuck; the others were looked at meanwhile.
constexpr uint64_t kSurveyNs = 15'000 * kMillisecond;
// In the destructor, for what was sent to be taken.
constexpr uint64_t kMostEndingNs = 2'000 * kMillisecond;
/// Of others' rails that this member relays at a time.
// Of 2 MiB each: 8 GiB at the very most, and so many queue pairs that a device refuses long before.
constexpr size_t kMostRelayed = 4096;

std::string text_of(const bringup::PortCard& card) {
  return fmt::format("port {} of {}: {}, {} Mb/s, GID {}", card.port, card.device,
                     card.capabilities.has_rc ? "RC" : "UC alone", card.rate_mbps, bringup::text_of(card.gid()));
}

std::vector<bringup::PortCard> usable(const Devices& devices) {
  std::vector<bringup::PortCard> cards;
  std::ranges::copy_if(devices.cards(), std::back_inserter(cards),
                       [](const bringup::PortCard& card) { return card.capabilities.can_connect(); });
  return cards;
}

/// The ports, of which one at least can carry circuits, or the words that say why there is none.
// Blocks for up to kSurveyNs. Throws base::Error.
std::shared_ptr<Devices> open_devices(const verbs::Library& library, const Log& log) {
  const bringup::Survey survey = bringup::survey(library, base::now_ns() + kSurveyNs);
  std::string reasons;
  for (const bringup::SurveyedPort& port : survey.usable) {
    log(Level::info, fmt::format("{} ({})", text_of(port.card), port.gid_choice));
  }
  for (const bringup::UnusablePort& port : survey.unusable) {
    reasons += fmt::format("; {}: {}", port.device, port.reason);
  }
  if (survey.usable.empty()) {
    throw base::Error(ENODEV, "looking for ports", fmt::format("verbs library {}", library.name()),
                      "no port can carry anything" + reasons);
  }
  if (!reasons.empty()) {
    log(Level::info, "ports that are not used until they can be" + reasons);
  }
  return std::make_shared<Devices>(library, survey);
}

// Those of the cables: on these the membership calls out for members that nobody has told it of.
std::vector<std::string> interfaces_of(const Devices& devices) {
  std::vector<membership::Ip> addresses;
  for (const bringup::PortCard& card : devices.cards()) {
    for (const bringup::CardGid& gid : card.gids) {
      addresses.push_back(gid.gid);
    }
  }
  return membership::interfaces_with(addresses);
}

membership::MembershipPlan membership_plan(const EndpointPlan& plan, MemberId self, const Devices& devices,
                                           const Network& network) {
  membership::MembershipPlan made;
  made.member = self;
  made.node = plan.node;
  made.name = plan.name;
  made.group = plan.group;
  made.secret = plan.secret;
  made.folder = plan.folder;
  made.interfaces = interfaces_of(devices);
  made.details = emit(network.own());
  made.most_silent_ms = plan.most_silent_ms;
  return made;
}

}  // namespace

Endpoint::Endpoint(const EndpointPlan& plan, Log log)
    : plan_(plan),
      library_(verbs::Library::open(plan.verbs)),
      devices_(open_devices(library_, log)),
      ports_(usable(*devices_)),
      ways_(ways_of(plan.way, plan.least_written_bytes, library_, ports_)),
      registrations_(std::make_shared<Registrations>(devices_, log)),
      self_(membership::new_member()),
      network_(*devices_, plan.node, self_, plan.name),
      // In the relays' thread: what the task needs of the rail is copied, for the rail may be gone when it runs.
      relays_(std::make_unique<Relays>(endings_,
                                       [this](const RelayedRail& rail) {
                                         tasks_.put([this, circuit = rail.circuit(), number = rail.number(),
                                                     path = rail.path(), why = rail.failure()] {
                                           in_.send_along(path, RailDown{circuit, number, why});
                                         });
                                       })),
      membership_(std::make_unique<membership::Membership>(membership_plan(plan, self_, *devices_, network_),
                                                           static_cast<membership::User&>(*this))),
      in_{devices_, network_, *membership_, std::move(log), endings_, registrations_, ways_},
      // Last: the thread uses all members that are made before it.
      thread_(base::start_thread([this] { run(); })) {}

// Blocks for up to kMostEndingNs, and as long as the membership's and the relays' threads need. No call may be under
// way.
Endpoint::~Endpoint() {
  tasks_.put([this] {
    for (const auto& [id, outgoing] : outgoing_) {
      outgoing->close();
    }
    for (const auto& [id, incoming] : incoming_) {
      incoming->close();
    }
  });
  // After the task that closes all: the thread ends only when its tasks are done.
  is_ending_ = true;
  wake();
  thread_.join();
  membership_.reset();  // nothing is heard any more
  relays_.reset();
}

uint64_t Endpoint::listen(std::span<std::byte, kHandleBytes> handle) {
  // Random, so that a handle of an earlier process with the same address leads nowhere; odd, so that it is not 0.
  const uint64_t number = bootstrap::random_number() | 1U;
  // Thread-safe, as the membership says.
  emit(Handle{membership_->contact(), number}, handle);
  auto listener = std::make_shared<Listener>();
  // Listeners are in two maps: listeners_ is the endpoint's thread's, accepting_ that of the calls, under
  // calls_lock_.
  tasks_.put([this, number, listener] { listeners_.emplace(number, listener); });
  const base::LockGuard guard(calls_lock_);
  accepting_.emplace(number, std::move(listener));
  return number;
}

void Endpoint::close_listener(uint64_t listener) {
  {
    const base::LockGuard guard(calls_lock_);
    accepting_.erase(listener);
  }
  tasks_.put([this, listener] {
    const auto found = listeners_.find(listener);
    if (found == listeners_.end()) {
      return;
    }
    {
      const base::LockGuard guard(found->second->lock);
      // Nobody accepts them any more, but for a call that is under way, which then gets one that is closed.
      for (const auto& incoming : found->second->opened) {
        incoming->close();
      }
    }
    listeners_.erase(found);
  });
}

std::shared_ptr<Incoming> Endpoint::accept(uint64_t listener) {
  std::shared_ptr<Listener> at;
  {
    const base::LockGuard guard(calls_lock_);
    const auto found = accepting_.find(listener);
    if (found == accepting_.end()) {
      return nullptr;
    }
    at = found->second;
  }
  if (!at->lock.try_lock()) {
    return nullptr;  // whoever asks does so again, and must not wait for a thread that may be off its processor
  }
  const base::LockGuard guard(at->lock, base::kAdoptLock);
  if (at->opened.empty()) {
    return nullptr;
  }
  std::shared_ptr<Incoming> incoming = std::move(at->opened.front());
  at->opened.pop_front();
  return incoming;
}

// Never blocks. Null: the handle is none of ours.
std::shared_ptr<Outgoing> Endpoint::connect(std::span<std::byte, kHandleBytes> handle) {
  const auto parsed = parse_handle(handle);
  if (!parsed) {
    return nullptr;
  }
  {
    const base::LockGuard guard(calls_lock_);
    // A stranger's ticket is in no map: then it is a new connection, and the ticket is overwritten.
    if (const auto found = connecting_.find(ticket_of(handle)); found != connecting_.end()) {
      return found->second;
    }
  }
  const CircuitId id = bootstrap::random_number() | 1U;
  auto outgoing = std::make_shared<Outgoing>(id, parsed->contact.member, parsed->listener, plan_.has_checksums);
  set_ticket(handle, id);
  {
    const base::LockGuard guard(calls_lock_);
    connecting_.emplace(id, outgoing);
  }
  tasks_.put([this, outgoing, contact = parsed->contact] {
    outgoing_.emplace(outgoing->id(), outgoing);  // before the call: if the peer is gone, it is there to hear of it
    membership_->call(contact);
  });
  return outgoing;
}

// The program has its circuit: the next connect() with that handle begins a new one.
void Endpoint::hand_over(CircuitId circuit) {
  const base::LockGuard guard(calls_lock_);
  connecting_.erase(circuit);
}

// On the membership's thread, as the next two: everything goes to the endpoint's own, so that its maps need no lock.
void Endpoint::on_member(const membership::Announcement& announcement) {
  tasks_.put([this, announcement] { network_.hear(announcement); });
}

void Endpoint::on_gone(MemberId member, const std::string& name, const std::string& why) {
  tasks_.put([this, member, name, why] { hear_gone(member, name, why); });
}

void Endpoint::on_message(MemberId from, uint16_t kind, std::span<const std::byte> bytes) {
  // What can't be read is dropped without a word: it may be of a later version.
  if (auto control = parse_control(kind, bytes)) {
    tasks_.put([this, from, heard = std::move(*control)] { dispatch(from, heard); });
  }
}

// The thread. Tasks catch base::Error themselves where devices may refuse.
void Endpoint::run() {
  uint64_t next_tick_ns = 0;
  uint64_t next_look_ns = 0;
  uint64_t ending_ns = 0;
  bool is_restless = true;
  // Each round: tasks, then ports, then all circuits. A task may block in a device (Rail::connect()), and so may
  // look_around(): other circuits are moved on by their programs meanwhile.
  while (true) {
    is_restless = run_tasks(!is_restless);
    now_ns_ = base::now_ns();
    const bool is_tick = now_ns_ >= next_tick_ns;
    if (now_ns_ >= next_look_ns) {
      in_.survive([this] { look_around(); });
      next_look_ns = now_ns_ + kLookNs;
    }
    step_all(is_tick);
    if (is_tick) {
      next_tick_ns = now_ns_ + kTickNs;
    }
    if (is_ending_) {
      ending_ns = ending_ns == 0 ? now_ns_ : ending_ns;
      if ((outgoing_.empty() && incoming_.empty() && tasks_.is_empty()) || now_ns_ - ending_ns > kMostEndingNs) {
        break;
      }
    }
  }
  // Here, since queue pairs of others' circuits end in this thread alone.
  outgoing_.clear();
  incoming_.clear();
  being_relayed_.clear();
}

/// Waits for something to do, a short time only if not `may_wait`. Whether something wants its turn soon.
bool Endpoint::run_tasks(bool may_wait) {
  const auto wants_turn = [](const auto& one) { return one.second->is_restless(); };
  tasks_.wait(may_wait ? kTickNs : kRestlessNs);
  tasks_.take([this](const Tasks::Task& task) {
    // Anew for each: the one before may have taken a second.
    now_ns_ = base::now_ns();
    in_.survive(task);
  });
  return std::ranges::any_of(outgoing_, wants_turn) || std::ranges::any_of(incoming_, wants_turn);
}

void Endpoint::step_all(bool is_tick) {
  // What is erased here may still be held by the program, which then destroys it.
  std::erase_if(outgoing_, [&](const auto& one) {
    bool is_over = false;
    in_.survive([&] { is_over = one.second->step(now_ns_, is_tick, in_); });
    return is_over;
  });
  std::erase_if(incoming_, [&](const auto& one) {
    bool is_over = false;
    in_.survive([&] { is_over = step(one.second, is_tick); });
    return is_over;
  });
}

/// Whether it is over. Once it is open its listener has it.
bool Endpoint::step(const std::shared_ptr<Incoming>& one, bool is_tick) {
  Incoming& incoming = *one;
  const bool is_over = incoming.step(is_tick, in_);
  if (incoming.circuit()->is_open() && !incoming.is_handed_over) {
    if (const auto listener = listeners_.find(incoming.listener()); listener != listeners_.end()) {
      const base::LockGuard guard(listener->second->lock);
      listener->second->opened.push_back(one);
    } else {
      incoming.close();  // its listener has been closed meanwhile
    }
    incoming.is_handed_over = true;
  }
  return is_over;
}

// May block in a device: trials of ports.
void Endpoint::look_around() {
  bool has_news = network_.look_at_ports(now_ns_);
  const std::vector<uint16_t> come_up = network_.take_come_up();
  for (const uint16_t port : come_up) {
    in_.log(Level::info, text_of(devices_->cards()[port]) + " has come up");
  }
  if (!come_up.empty()) {
    // At the other end of the new port's cable there may be members that nobody knows of.
    membership_->watch(interfaces_of(*devices_));
  }
  has_news = network_.try_ports(now_ns_) || has_news;
  if (has_news) {
    membership_->announce(emit(network_.own()));
  }
}

void Endpoint::dispatch(MemberId from, const Control& control) {
  const CircuitId circuit = std::visit([](const auto& one) { return one.circuit; }, control);
  const auto outgoing = outgoing_.find(circuit);
  const auto incoming = incoming_.find(circuit);
  // Only a circuit's two ends may say what becomes of it; its random id, which relays know, is not enough.
  const bool is_ours = outgoing != outgoing_.end() && outgoing->second->peer() == from;
  const bool is_theirs = incoming != incoming_.end() && incoming->second->peer() == from;
  if (const auto* open = std::get_if<Open>(&control)) {
    hear(from, *open);
  } else if (const auto* rail_open = std::get_if<RailOpen>(&control)) {
    hear(from, *rail_open);
  } else if (const auto* ready = std::get_if<RailReady>(&control)) {
    hear_ready(from, *ready);
  } else if (const auto* down = std::get_if<RailDown>(&control)) {
    hear_down(*down);
  } else if (const auto* opened = std::get_if<Opened>(&control); opened != nullptr && is_ours) {
    outgoing->second->hear(*opened, now_ns_, in_);
  } else if (const auto* refused = std::get_if<Refused>(&control); refused != nullptr && is_ours) {
    outgoing->second->hear(*refused);
  } else if (const auto* close = std::get_if<Close>(&control)) {
    if (is_ours) {
      outgoing->second->hear(*close, in_);
    }
    if (is_theirs) {
      incoming->second->hear(*close, in_);
    }
  }
}

void Endpoint::hear(MemberId from, const Open& open) {
  // The sender asks until it is answered: a repetition makes nothing new.
  if (incoming_.contains(open.circuit)) {
    in_.send(from, Opened{open.circuit, Incoming::least_written_bytes(open, in_)});  // the answer may have been lost
    return;
  }
  if (!listeners_.contains(open.listener)) {
    // Its listener has been closed: the task that adds it was put in before its handle was known to anybody.
    in_.send(from, Refused{open.circuit, fmt::format("{} does not listen there (any more)", plan_.name)});
    return;
  }
  try {
    incoming_.emplace(open.circuit, std::make_shared<Incoming>(open, from, in_));
    in_.send(from, Opened{open.circuit, Incoming::least_written_bytes(open, in_)});
  } catch (const base::Error& error) {
    in_.log(Level::warning, error.what());
    in_.send(from, Refused{open.circuit, error.what()});
  }
}

void Endpoint::hear(MemberId from, const RailOpen& open) {
  // parse_control() has checked the position against the path. A hop that is told by another than the one before it
  // is a mistake, or worse.
  if (open.path[open.position].member != self_ || open.path[open.position - 1U].member != from) {
    return;
  }
  // Not the last hop: somebody else's circuit.
  if (open.position + 1U < open.path.size()) {
    relay(open);
    return;
  }
  const auto incoming = incoming_.find(open.circuit);
  if (incoming == incoming_.end() || incoming->second->peer() != open.path.front().member) {
    in_.send_along(open.path, RailDown{open.circuit, open.rail, plan_.name + " has no such circuit"});
    return;
  }
  incoming->second->hear(open, in_);
}

/// Makes both queue pairs, and asks the next hop; the one before this is answered when that has answered.
void Endpoint::relay(const RailOpen& open) {
  const Hop& here = open.path[open.position];
  const bool is_possible = devices_->has_port(here.entry.port) && devices_->has_port(here.exit.port);
  // A bound on others' memory here: a relayed rail takes some 2 MiB.
  if (!is_possible || being_relayed_.size() + relays_->all().size() >= kMostRelayed) {
    in_.send_along(open.path, RailDown{open.circuit, open.rail, plan_.name + " can't relay it"});
    return;
  }
  try {
    const Network::HopKind out = network_.kind_of_hop(open.path, open.position);
    auto relayed = std::make_shared<RelayedRail>(
        *devices_, open.circuit, open.rail, open.path, open.position,
        RelayedRail::Side{open.from.is_uc ? IBV_QPT_UC : IBV_QPT_RC, open.from.counts_frames},
        RelayedRail::Side{out.type, out.counts_frames});
    // May throw, and may block where its device does: then this circuit's rail fails, or comes late.
    relayed->in().connect(open.from);
    RailOpen onward = open;
    ++onward.position;
    onward.from = relayed->out().address();
    in_.send(open.path[onward.position].member, onward);
    being_relayed_[{open.circuit, open.rail}] = std::move(relayed);
  } catch (const base::Error& error) {
    in_.send_along(open.path, RailDown{open.circuit, open.rail, fmt::format("{}: {}", plan_.name, error.what())});
  }
}

/// Only the next hop on the path can say so.
void Endpoint::hear_ready(MemberId from, const RailReady& ready) {
  if (const auto outgoing = outgoing_.find(ready.circuit); outgoing != outgoing_.end()) {
    outgoing->second->hear(from, ready, in_);
    return;
  }
  const auto found = being_relayed_.find({ready.circuit, ready.rail});
  if (found == being_relayed_.end()) {
    return;
  }
  // By the place that the hop before has named, which was checked: a path is a peer's, and may name a member twice.
  if (found->second->path()[found->second->position() + 1U].member != from) {
    return;
  }
  const std::shared_ptr<RelayedRail> relayed = std::move(found->second);
  // Before anything can throw: it is either in the relays' list or gone.
  being_relayed_.erase(found);
  try {
    relayed->out().connect(ready.to);
    QueuePairAddress own = relayed->in().address();
    // A relay's device sends frames on, for which they have to lie in registered memory of this process.
    own.reads_in_place = false;
    relays_->add(relayed);
    const Path& path = relayed->path();
    in_.send(path[relayed->position() - 1U].member, RailReady{ready.circuit, ready.rail, own});
    in_.log(Level::info, fmt::format("relaying {}", network_.text_of(path)));
  } catch (const std::exception& error) {
    in_.send_along(relayed->path(),
                   RailDown{ready.circuit, ready.rail, fmt::format("{}: {}", plan_.name, error.what())});
  }
}

void Endpoint::hear_down(const RailDown& down) {
  if (const auto outgoing = outgoing_.find(down.circuit); outgoing != outgoing_.end()) {
    outgoing->second->hear(down, now_ns_, in_);
  }
  if (const auto incoming = incoming_.find(down.circuit); incoming != incoming_.end()) {
    incoming->second->hear(down);
  }
  being_relayed_.erase({down.circuit, down.rail});
  // Their thread ends them: it may be using them just now.
  relays_->end_if(
      [&](const RelayedRail& rail) { return rail.circuit() == down.circuit && rail.number() == down.rail; });
}

void Endpoint::hear_gone(MemberId member, const std::string& name, const std::string& why) {
  for (const auto& [id, outgoing] : outgoing_) {
    outgoing->hear_gone(member, name, why, in_);
  }
  for (const auto& [id, incoming] : incoming_) {
    if (incoming->peer() == member) {
      incoming->hear_gone(name, why, in_);
    }
  }
  const auto has_member = [&](const Path& path) { return std::ranges::find(path, member, &Hop::member) != path.end(); };
  std::erase_if(being_relayed_, [&](const auto& one) { return has_member(one.second->path()); });
  relays_->end_if([&](const RelayedRail& rail) { return has_member(rail.path()); });
  // Last: the names in the words above are the network's.
  network_.forget(member);
}

}  // namespace ringbolt::circuit
