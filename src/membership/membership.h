#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "membership/announcement.h"
#include "membership/discovery.h"
#include "membership/members.h"
#include "membership/neighbours.h"

namespace ringbolt::membership {

/// Who hears of members and their messages. Called in the membership's thread, one call at a time; nothing here may
/// block. What it throws is dropped: to the membership that word is one that was heard.
class User {
 public:
  virtual ~User() = default;
  /// One has come, or says something new of itself.
  virtual void on_member(const Announcement& announcement) = 0;
  /// One is gone for good: it has ended, left, or said nothing for too long. Nothing comes from it any more.
  virtual void on_gone(MemberId member, const std::string& name, const std::string& why) = 0;
  /// `bytes` are good during the call. They have been passed on by members alone, but are a peer's all the same.
  virtual void on_message(MemberId from, uint16_t kind, std::span<const std::byte> bytes) = 0;
};

/// Copied.
struct MembershipPlan {
  MemberId member = 0;  ///< new_member()
  NodeId node = 0;
  std::string name = {};    ///< of this member, for messages
  std::string group = {};   ///< of other groups nobody is met
  std::string secret = {};  ///< what all members know; empty: whoever reaches the port may join
  std::vector<std::byte> details = {};
  std::string folder = {};                   ///< of Discovery
  std::vector<std::string> interfaces = {};  ///< likewise
  uint32_t most_silent_ms = 800;             ///< until a member that says nothing is gone
};

/// An id that no other member has, by all likelihood. Throws base::Error. Thread-safe.
MemberId new_member();

/// Processes that find each other and stay in touch, without a leader and without anybody knowing who will come: each
/// calls those of whom it hears, and passes on what others have to say, so that members talk who can't reach each other
/// but by way of others. Every member beats; one that ends or falls silent is gone for all.
///
/// Has a thread of its own. Thread-safe. docs/formats/membership.md. Its calls only leave word for the thread, under
/// a lock that nobody holds for long.
class Membership {
 public:
  /// Listens and begins. `user` must outlive it. Throws base::Error; also where the details are too long.
  Membership(MembershipPlan plan, User& user);
  /// Says that it leaves. Blocks for 0.2 s at most, until that is sent. The user is called until it returns.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  MemberId id() const { return id_; }
  /// For others, to call this member. Does not change.
  const Contact& contact() const { return contact_; }

  /// Makes a member known by where it can be called, if it is not known yet. Of one that is gone the user hears
  /// again. Returns at once. There is no word of success but on_member().
  void call(const Contact& contact) RINGBOLT_EXCLUDES(lock_);
  /// To a member, in order as long as the way stays the same. What has no way is lost. Bytes: what one frame can
  /// carry less kRouteBytes. Whether it has arrived is not known: who needs that is answered.
  void send(MemberId to, uint16_t kind, std::vector<std::byte> bytes) RINGBOLT_EXCLUDES(lock_);
  /// What this member says of itself from now on. Throws base::Error (EMSGSIZE) where that is more than
  /// kMostDetailBytes, which nobody would read: then all stays as it was.
  void announce(std::vector<std::byte> details) RINGBOLT_EXCLUDES(lock_);
  /// Looks for others on these interfaces, too, from now on. Names of interfaces. Those of an earlier call that the
  /// thread has not taken yet are replaced.
  void watch(std::vector<std::string> interfaces) RINGBOLT_EXCLUDES(lock_);

 private:
  struct Outgoing {
    MemberId to = 0;
    uint16_t kind = 0;
    std::vector<std::byte> bytes;
  };
  /// Somebody to be called who has no connection with us.
  struct Wanted {
    std::vector<bootstrap::Address> ways;
    uint32_t wait = 0;       ///< ticks until the next call
    uint32_t pause = 2;      ///< ticks between calls; grows
    uint32_t n_refused = 0;  ///< calls that its host has refused: nobody listens there
    bool is_near = false;    ///< on this machine
  };

  void run();
  template <class Work>
  static void survive(Work work) noexcept;
  void hear_all();
  void tick();
  void take_commands() RINGBOLT_EXCLUDES(lock_);
  void hear(const Neighbours::Event& event);
  void hear_frame(const Neighbours::Event& event);
  void hear_announcement(const Announcement& announcement, MemberId from);
  void hear_gone(std::span<const std::byte> bytes, MemberId from);
  void route(std::span<const std::byte> routed);
  void want(MemberId member, std::vector<bootstrap::Address> ways, uint32_t wait, bool is_near = false);
  void hear_failed_call(MemberId member, int error);
  void call_wanted();
  void look_around();
  void update_adjacency();
  void publish();
  void end_member(MemberId member, const std::string& why, bool is_certain, MemberId told_by);
  void flood(FrameKind kind, const bootstrap::Payload& payload, MemberId origin, MemberId from);
  std::vector<std::byte> gone_bytes(MemberId member, const std::string& why, bool is_certain) const;
  void leave();

  const MemberId id_;
  MembershipPlan plan_;
  User& user_;
  const uint64_t machine_;

  // Of the thread alone.
  Neighbours neighbours_;
  Contact contact_;  ///< constant once made
  Members members_;
  Discovery discovery_;
  Announcement own_;
  std::map<MemberId, Wanted> wanted_;
  uint32_t n_ticks_ = 0;
  uint32_t beat_ = 0;

  // Guards what other threads leave for the thread; held for a swap or a push.
  base::Mutex lock_;
  std::vector<Contact> calls_ RINGBOLT_GUARDED_BY(lock_);
  std::deque<Outgoing> outgoing_ RINGBOLT_GUARDED_BY(lock_);
  std::unique_ptr<std::vector<std::byte>> details_ RINGBOLT_GUARDED_BY(lock_);  ///< new ones
  std::vector<std::string> interfaces_ RINGBOLT_GUARDED_BY(lock_);              ///< likewise
  std::atomic<bool> is_ending_ = false;
  base::UniqueFd wake_;
  std::thread thread_;
};

}  // namespace ringbolt::membership
