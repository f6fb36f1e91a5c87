#include "membership/membership.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "base/start_thread.h"
#include "bootstrap/authenticator.h"
#include "membership/addresses.h"

namespace ringbolt::membership {
namespace {

// All times below are in ticks, of which a process that stands still has none.
constexpr uint64_t kTickNs = 50'000'000;
constexpr uint32_t kTickMs = 50;
// A beat each 100 ms: eight are missed before a member is gone (most_silent_ms).
constexpr uint32_t kTicksPerBeat = 2;
/// A connection over which nothing has come for so long may lead over a cable that is gone: others pass beats on.
constexpr uint32_t kStalledTicks = 6;
/// One that has been heard since then is not gone because another member does not hear it.
constexpr uint32_t kRecentTicks = 8;
// Five seconds.
constexpr uint32_t kMostPauseTicks = 100;
/// Both ends of a pair hear of each other: the one of the greater number calls only if the other one does not.
constexpr uint32_t kCourtesyTicks = 6;
// For a second all who begin at the same time look each tick; then twice a second, and call out each 2 s.
constexpr uint32_t kFirstLookTicks = 20;
constexpr uint32_t kLookTicks = 10;
constexpr uint32_t kCallOutTicks = 40;
// Addresses at which one member is tried at the same time.
constexpr size_t kMostWays = 8;
constexpr size_t kCallsToProve = 3;
// Ends messages that go round in circles while the members' views differ.
constexpr uint8_t kMostHops = 32;
constexpr size_t kMostReasonBytes = 200;
/// Before the bytes of a routed message: source, destination, hops left, kind.
constexpr size_t kRouteBytes = 8 + 8 + 1 + 2;
constexpr uint64_t kLeaveNs = 200'000'000;

// Others could not read the announcement, and to them this member would not be there.
void check_details(const std::vector<std::byte>& details) {
  if (details.size() > kMostDetailBytes) {
    throw base::Error(EMSGSIZE, "announcing a member",
                      fmt::format("{} bytes of details, {} are the most", details.size(), kMostDetailBytes));
  }
}

}  // namespace

MemberId new_member() {
  bootstrap::prepare_cryptography();
  return bootstrap::random_number() | 1U;
}

Membership::Membership(MembershipPlan plan, User& user)
    : id_(plan.member),
      plan_(std::move(plan)),
      user_(user),
      machine_(machine_number()),
      neighbours_(id_, plan_.group, plan_.secret),
      // Addresses that come later are not announced.
      contact_{id_, machine_, neighbours_.port(), own_addresses()},
      members_(id_, std::max(plan_.most_silent_ms / kTickMs, 2U)),
      discovery_({id_, machine_, neighbours_.port(), plan_.group, plan_.folder, plan_.interfaces}),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.is_open()) {
    throw base::Error(errno, "eventfd", "the members' thread");
  }
  check_details(plan_.details);
  own_.contact = contact_;
  own_.node = plan_.node;
  own_.name = plan_.name;
  own_.details = plan_.details;
  own_.version = 1;
  thread_ = base::start_thread([this] { run(); });
}

Membership::~Membership() {
  is_ending_ = true;
  (void)eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Membership::call(const Contact& contact) {
  const base::LockGuard guard(lock_);
  calls_.push_back(contact);
  (void)eventfd_write(wake_.get(), 1);
}

void Membership::send(MemberId to, uint16_t kind, std::vector<std::byte> bytes) {
  const base::LockGuard guard(lock_);
  outgoing_.push_back({to, kind, std::move(bytes)});
  (void)eventfd_write(wake_.get(), 1);
}

void Membership::announce(std::vector<std::byte> details) {
  check_details(details);
  const base::LockGuard guard(lock_);
  details_ = std::make_unique<std::vector<std::byte>>(std::move(details));
  (void)eventfd_write(wake_.get(), 1);
}

void Membership::watch(std::vector<std::string> interfaces) {
  const base::LockGuard guard(lock_);
  interfaces_ = std::move(interfaces);
  (void)eventfd_write(wake_.get(), 1);
}

/// Does what the thread has to do now. What is thrown, for want of memory or by the user, ends this alone: a program
/// must not die of it in a thread that it does not know. What is lost by it others say again, or count as silence.
template <class Work>
void Membership::survive(Work work) noexcept {
  try {
    work();
  } catch (const std::exception&) {
  }
}

void Membership::run() {
  std::vector<pollfd> fds;
  uint64_t next_tick_ns = base::now_ns();
  while (!is_ending_) {
    if (base::now_ns() >= next_tick_ns) {
      survive([this] { tick(); });
      // Ticks that were missed are not made up for: who stood still has not listened.
      next_tick_ns = base::now_ns() + kTickNs;
    }
    // Before the wait: what was queued below must not wait for a tick.
    survive([this] { neighbours_.flush(); });
    fds.clear();  // never those of before, which may be closed
    survive([&] {
      fds.push_back({wake_.get(), POLLIN, 0});
      // poll() passes over descriptors that are negative.
      fds.push_back({discovery_.fd(), POLLIN, 0});
      neighbours_.watch(fds);
    });
    (void)::poll(fds.data(), fds.size(), bootstrap::milliseconds_until(next_tick_ns, kTickMs));
    eventfd_t woken = 0;
    (void)eventfd_read(wake_.get(), &woken);
    survive([this] { hear_all(); });
    survive([this] { take_commands(); });
    survive([this] { call_wanted(); });
  }
  survive([this] { leave(); });
}

void Membership::hear_all() {
  // What it does may close other links: events of these that are left in the list are passed over as of members that
  // are gone.
  for (const Neighbours::Event& event : neighbours_.serve()) {
    survive([&] { hear(event); });
  }
  for (Discovery::Found& found : discovery_.receive()) {
    want(found.member, {found.at}, found.member < id_ ? kCourtesyTicks : 0);
  }
}

void Membership::tick() {
  ++n_ticks_;
  neighbours_.tick();
  for (const MemberId silent : members_.tick()) {
    end_member(silent, fmt::format("has said nothing for {} ms", plan_.most_silent_ms), false, 0);
  }
  update_adjacency();
  if (n_ticks_ % kTicksPerBeat == 0) {
    base::ByteWriter writer;
    writer.put(id_);
    writer.put(++beat_);
    flood(FrameKind::beat, bootstrap::make_payload(std::move(writer).bytes()), id_, 0);
  }
  for (auto& [member, wanted] : wanted_) {
    wanted.wait -= std::min(wanted.wait, 1U);
  }
  look_around();
}

void Membership::look_around() {
  const bool is_new_here = n_ticks_ < kFirstLookTicks;
  if (is_new_here || n_ticks_ % kCallOutTicks == 0) {
    discovery_.call_out();
  }
  if (is_new_here || n_ticks_ % kLookTicks == 0) {
    for (Discovery::Found& found : discovery_.look()) {
      want(found.member, {found.at}, found.member < id_ ? kCourtesyTicks : 0);
    }
  }
}

void Membership::take_commands() {
  std::vector<Contact> calls;
  std::deque<Outgoing> outgoing;
  std::unique_ptr<std::vector<std::byte>> details;
  std::vector<std::string> interfaces;
  {
    const base::LockGuard guard(lock_);
    // Out of the lock: what follows calls the user, who may call this.
    calls.swap(calls_);
    outgoing.swap(outgoing_);
    details.swap(details_);
    interfaces.swap(interfaces_);
  }
  if (discovery_.watch(interfaces)) {
    discovery_.call_out();
  }
  for (const Contact& contact : calls) {
    if (members_.is_gone(contact.member)) {
      survive(
          [&] { user_.on_gone(contact.member, fmt::format("member {:x}", contact.member), "its process has ended"); });
    }
    want(contact.member, ways_to(contact, machine_), 0, contact.machine == machine_);
  }
  if (details) {
    own_.details = std::move(*details);
    publish();
  }
  for (const Outgoing& message : outgoing) {
    base::ByteWriter writer;
    writer.put(id_);
    writer.put(message.to);
    writer.put(kMostHops);
    writer.put(message.kind);
    writer.put_bytes(message.bytes);
    route(writer.bytes());
  }
}

void Membership::want(MemberId member, std::vector<bootstrap::Address> ways, uint32_t wait, bool is_near) {
  if (member == 0 || member == id_ || members_.is_gone(member) || neighbours_.is_open(member) || ways.empty()) {
    return;
  }
  const auto [wanted, is_new] = wanted_.try_emplace(member);
  if (is_new) {
    wanted->second.wait = wait;
  }
  wanted->second.is_near = wanted->second.is_near || is_near;
  for (const bootstrap::Address& way : ways) {
    const bool is_known = std::ranges::any_of(wanted->second.ways, [&](const bootstrap::Address& other) {
      return other.length == way.length && std::memcmp(&other.bytes, &way.bytes, way.length) == 0;
    });
    if (!is_known && wanted->second.ways.size() < kMostWays) {
      wanted->second.ways.push_back(way);
    }
  }
}

void Membership::call_wanted() {
  std::erase_if(wanted_,
                [&](const auto& one) { return neighbours_.is_open(one.first) || members_.is_gone(one.first); });
  for (auto& [member, wanted] : wanted_) {
    if (wanted.wait == 0 && !neighbours_.is_dialling(member)) {
      for (const bootstrap::Address& way : wanted.ways) {
        neighbours_.dial(member, way);
      }
      wanted.wait = wanted.pause;
      // 100 ms at first: a member that has just begun may not listen yet.
      wanted.pause = std::min(wanted.pause * 2, kMostPauseTicks);
    }
  }
}

void Membership::hear(const Neighbours::Event& event) {
  switch (event.what) {
    case Neighbours::Event::What::opened:
      // It stood still for so long that all others went on without it; it has to begin anew, as another member.
      if (members_.is_gone(event.member)) {
        neighbours_.close(event.member);
        return;
      }
      neighbours_.send(event.member, FrameKind::announcement, bootstrap::make_payload(emit(own_)));
      // So a new neighbour knows all members at once, and not only those who say something later.
      for (const auto& [member, announcement] : members_.all()) {
        neighbours_.send(event.member, FrameKind::announcement, bootstrap::make_payload(emit(announcement)));
      }
      update_adjacency();
      break;
    case Neighbours::Event::What::frame:
      hear_frame(event);
      break;
    case Neighbours::Event::What::closed:
      // Nobody closes a connection while it lives. A time-out is a way that is gone, which says nothing of its end.
      if (event.error == 0 || event.error == ECONNRESET || event.error == EPIPE) {
        end_member(event.member, "its process has ended", true, 0);
      }
      update_adjacency();
      break;
    case Neighbours::Event::What::failed:
      hear_failed_call(event.member, event.error);
      break;
  }
}

/// A member listens for as long as it lives. One that has never been heard of and whose host says that nobody listens
/// has ended before it could be called: on another machine, only if all its addresses say so time and again, since one
/// of them may be another machine's here.
void Membership::hear_failed_call(MemberId member, int error) {
  const auto wanted = wanted_.find(member);
  if (wanted == wanted_.end() || error != ECONNREFUSED || members_.is_heard(member, kRecentTicks)) {
    return;
  }
  ++wanted->second.n_refused;
  const size_t n_proof = wanted->second.is_near ? 2 : kCallsToProve * wanted->second.ways.size();
  if (wanted->second.n_refused >= n_proof) {
    end_member(member, "nobody listens at its address any more: its process has ended", false, 0);
  }
}

void Membership::hear_frame(const Neighbours::Event& event) {
  members_.touch(event.member);
  switch (event.kind) {
    case FrameKind::announcement:
      // What can't be read is of another version, and not passed on.
      if (const auto announcement = parse_announcement(event.payload)) {
        hear_announcement(*announcement, event.member);
      }
      break;
    case FrameKind::beat: {
      base::ByteReader reader(event.payload);
      const auto member = reader.take<uint64_t>();
      const auto beat = reader.take<uint32_t>();
      // Only news is passed on: each beat crosses each connection once each way at most.
      if (reader.is_sound() && members_.hear_beat(member, beat)) {
        flood(FrameKind::beat, bootstrap::make_payload(event.payload), member, event.member);
      }
      break;
    }
    case FrameKind::gone:
      hear_gone(event.payload, event.member);
      break;
    case FrameKind::message:
      route(event.payload);
      break;
    case FrameKind::introduction:
      break;
  }
}

void Membership::hear_announcement(const Announcement& announcement, MemberId from) {
  const MemberId member = announcement.contact.member;
  const Members::News news = members_.hear(announcement);
  if (news == Members::News::none) {
    return;
  }
  flood(FrameKind::announcement, bootstrap::make_payload(emit(announcement)), member, from);
  want(member, ways_to(announcement.contact, machine_), member < id_ ? kCourtesyTicks : 0);
  user_.on_member(announcement);
}

void Membership::hear_gone(std::span<const std::byte> bytes, MemberId from) {
  base::ByteReader reader(bytes);
  const auto member = reader.take<uint64_t>();
  const bool is_certain = reader.take<uint8_t>() != 0;
  const std::string why = reader.take_text(kMostReasonBytes);
  // That another one does not hear it may be for want of a way; `is_certain` means that its process has ended.
  if (!reader.is_sound() || member == id_ || (!is_certain && members_.is_heard(member, kRecentTicks))) {
    return;
  }
  end_member(member, why, is_certain, from);
}

void Membership::end_member(MemberId member, const std::string& why, bool is_certain, MemberId told_by) {
  const Announcement* const known = members_.find(member);
  // A copy: end() below removes it.
  const std::string name = known != nullptr ? known->name : fmt::format("member {:x}", member);
  if (!members_.end(member)) {
    return;
  }
  neighbours_.close(member);
  wanted_.erase(member);
  flood(FrameKind::gone, bootstrap::make_payload(gone_bytes(member, why, is_certain)), member, told_by);
  update_adjacency();
  user_.on_gone(member, name, why);
}

std::vector<std::byte> Membership::gone_bytes(MemberId member, const std::string& why, bool is_certain) const {
  base::ByteWriter writer;
  writer.put(member);
  writer.put(static_cast<uint8_t>(is_certain));
  writer.put_text(std::string_view(why).substr(0, kMostReasonBytes));
  return std::move(writer).bytes();
}

void Membership::route(std::span<const std::byte> routed) {
  base::ByteReader reader(routed);
  const auto from = reader.take<uint64_t>();
  const auto to = reader.take<uint64_t>();
  const auto hops_left = reader.take<uint8_t>();
  const auto kind = reader.take<uint16_t>();
  if (!reader.is_sound()) {
    return;
  }
  if (to == id_) {
    // on_gone() has promised that.
    if (!members_.is_gone(from)) {
      user_.on_message(from, kind, routed.subspan(kRouteBytes));
    }
    return;
  }
  // A connection that is silent may be dead without saying so.
  std::set<MemberId> neighbours = neighbours_.heard_within(kStalledTicks);
  if (hops_left == 0) {
    return;
  }
  if (const auto next = members_.next_hop(to, neighbours)) {
    std::vector<std::byte> passed(routed.begin(), routed.end());
    // Behind the two members' numbers: see kRouteBytes.
    passed[16] = static_cast<std::byte>(hops_left - 1);
    // A full queue loses it: who needs an answer asks again.
    neighbours_.send(*next, FrameKind::message, bootstrap::make_payload(std::move(passed)));
  }
}

void Membership::update_adjacency() {
  const std::set<MemberId> heard = neighbours_.heard_within(kStalledTicks);
  std::vector<MemberId> adjacent(heard.begin(), heard.end());
  if (adjacent != own_.adjacent) {
    own_.adjacent = std::move(adjacent);
    publish();
  }
}

void Membership::publish() {
  ++own_.version;
  flood(FrameKind::announcement, bootstrap::make_payload(emit(own_)), id_, 0);
}

/// To all neighbours but the one that it came from, the one that it is about, and those that hear that one themselves.
void Membership::flood(FrameKind kind, const bootstrap::Payload& payload, MemberId origin, MemberId from) {
  // Of each member's beats only the newest is of use to who could not be sent the one before. Not 0. Two members
  // whose lower halves are alike share a place, and lose a beat now and then.
  const uint32_t latest_of = kind == FrameKind::beat ? static_cast<uint32_t>(origin) | 1U : 0;
  // Silent ones too: they may only be slow.
  for (const MemberId neighbour : neighbours_.heard_within(UINT32_MAX)) {
    const bool hears_itself = origin != id_ && members_.is_adjacent(neighbour, origin) && kind == FrameKind::beat;
    if (neighbour != from && neighbour != origin && !hears_itself) {
      neighbours_.send(neighbour, kind, payload, latest_of);
    }
  }
}

void Membership::leave() {
  flood(FrameKind::gone, bootstrap::make_payload(gone_bytes(id_, "it has left", true)), id_, 0);
  const uint64_t deadline_ns = base::now_ns() + kLeaveNs;
  std::vector<pollfd> fds;
  for (neighbours_.flush(); neighbours_.has_output() && base::now_ns() < deadline_ns; neighbours_.flush()) {
    fds.clear();
    neighbours_.watch(fds);
    (void)::poll(fds.data(), fds.size(), bootstrap::milliseconds_until(deadline_ns, kTickMs));
  }
}

}  // namespace ringbolt::membership
