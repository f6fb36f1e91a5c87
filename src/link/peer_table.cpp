#include "link/peer_table.h"

#include <algorithm>
#include <utility>

#include "base/lock_guard.h"

namespace ringbolt::link {
namespace {

template <class T>
std::shared_ptr<T> find(const std::map<uint64_t, std::shared_ptr<T>>& map, uint64_t id) {
  const auto found = map.find(id);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

uint64_t PeerTable::next_id() {
  const base::LockGuard lock(mutex_);
  return ++last_id_;
}

std::shared_ptr<ConnectedPeer> PeerTable::living_at(uint32_t slot) const {
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<ConnectedPeer>& peer = by_slot_[slot];
  return peer && peer->is_alive() ? peer : nullptr;
}

std::shared_ptr<Line> PeerTable::line(uint64_t id) const {
  const base::LockGuard lock(mutex_);
  return find(content_.lines, id);
}

std::shared_ptr<ConnectedPeer> PeerTable::peer(uint64_t id) const {
  const base::LockGuard lock(mutex_);
  return find(content_.peers, id);
}

std::shared_ptr<ConnectedPeer> PeerTable::insert_caller(const std::shared_ptr<Line>& line,
                                                        std::span<const std::byte> hello,
                                                        std::span<const int> descriptors) {
  const base::LockGuard lock(mutex_);
  if (is_closed_) {
    return nullptr;
  }
  std::shared_ptr<ConnectedPeer>& at_slot = by_slot_[line->peer->slot()];
  if (at_slot && at_slot->is_alive()) {
    return at_slot;
  }
  // When this fails the socket reports its end to the watch, like any later failure.
  line->socket->send(hello, descriptors);
  at_slot = line->peer;
  content_.peers[line->peer->id()] = line->peer;
  content_.lines[line->id] = line;
  return line->peer;
}

std::shared_ptr<Line> PeerTable::insert_stranger(const std::shared_ptr<Line>& line) {
  const base::LockGuard lock(mutex_);
  if (is_closed_) {
    return line;
  }
  content_.lines[line->id] = line;
  if (content_.lines.size() <= kMaxStrangers) {
    return nullptr;
  }
  const auto is_stranger = [](const auto& entry) { return entry.second->peer == nullptr; };
  const auto count = std::count_if(content_.lines.begin(), content_.lines.end(), is_stranger);
  if (static_cast<size_t>(count) <= kMaxStrangers) {
    return nullptr;
  }
  return std::find_if(content_.lines.begin(), content_.lines.end(), is_stranger)->second;
}

PeerTable::Seat PeerTable::seat(Line& line, const std::shared_ptr<ConnectedPeer>& candidate) {
  const base::LockGuard lock(mutex_);
  if (is_closed_) {
    return Seat::closed;
  }
  std::shared_ptr<ConnectedPeer>& at_slot = by_slot_[candidate->slot()];
  line.is_parked = false;
  if (at_slot && !at_slot->is_gone()) {
    if (at_slot->incarnation() == 0) {
      line.is_parked = true;
      return Seat::parked;
    }
    if (at_slot->incarnation() == line.introduction.hello.incarnation) {
      line.peer = at_slot;
      return Seat::joined;
    }
    // The slot changed hands and we have not heard of the old owner's end yet; it stays in content_ until then.
  }
  at_slot = candidate;
  line.peer = candidate;
  content_.peers[candidate->id()] = candidate;
  return Seat::fresh;
}

std::vector<std::shared_ptr<Line>> PeerTable::lines() const {
  const base::LockGuard lock(mutex_);
  std::vector<std::shared_ptr<Line>> lines;
  for (const auto& [id, line] : content_.lines) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::shared_ptr<Line>> PeerTable::lines_of(const ConnectedPeer& peer) const {
  const base::LockGuard lock(mutex_);
  std::vector<std::shared_ptr<Line>> lines;
  for (const auto& [id, line] : content_.lines) {
    if (line->peer.get() == &peer) {
      lines.push_back(line);
    }
  }
  return lines;
}

std::vector<std::shared_ptr<Line>> PeerTable::parked_at(uint32_t slot) const {
  const base::LockGuard lock(mutex_);
  std::vector<std::shared_ptr<Line>> lines;
  for (const auto& [id, line] : content_.lines) {
    if (line->is_parked && line->introduction.hello.slot == slot) {
      lines.push_back(line);
    }
  }
  return lines;
}

bool PeerTable::has_parked() const {
  const base::LockGuard lock(mutex_);
  return std::ranges::any_of(content_.lines, [](const auto& entry) { return entry.second->is_parked; });
}

std::vector<std::shared_ptr<Line>> PeerTable::join_parked(const std::shared_ptr<ConnectedPeer>& peer) {
  const base::LockGuard lock(mutex_);
  std::vector<std::shared_ptr<Line>> joined;
  for (const auto& [id, line] : content_.lines) {
    if (line->is_parked && line->introduction.hello.slot == peer->slot() && line->pid > 0 && line->pid == peer->pid()) {
      line->is_parked = false;
      line->peer = peer;
      joined.push_back(line);
    }
  }
  return joined;
}

void PeerTable::remove(const Line& line) {
  const base::LockGuard lock(mutex_);
  content_.lines.erase(line.id);
}

void PeerTable::remove(const ConnectedPeer& peer) {
  const base::LockGuard lock(mutex_);
  std::shared_ptr<ConnectedPeer>& at_slot = by_slot_[peer.slot()];
  if (at_slot.get() == &peer) {
    at_slot = nullptr;
  }
  content_.peers.erase(peer.id());
}

PeerTable::Content PeerTable::close() {
  const base::LockGuard lock(mutex_);
  is_closed_ = true;
  by_slot_.fill(nullptr);
  return std::exchange(content_, {});
}

void PeerTable::abandon_after_fork() {
  if (!mutex_.try_lock()) {
    return;
  }
  for (const auto& [id, peer] : content_.peers) {
    peer->abandon_after_fork();
  }
  for (const auto& [id, line] : content_.lines) {
    line->socket->abandon_after_fork();
    line->introduction = {};
  }
  mutex_.unlock();
}

}  // namespace ringbolt::link
