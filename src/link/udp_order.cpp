#include "link/udp_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_fields.h"

namespace ringbolt::link {
namespace {

using base::take_number;
using base::take_until;

constexpr std::string_view kTitle = "ringbolt-udp-order 1";
constexpr std::string_view kEnd = "end";  // what follows is of an older, longer text
constexpr std::array<std::string_view, 2> kFamilyNames{"ipv4", "ipv6"};
constexpr size_t kMaxMembers = 4096;  // per family; there are 1024 slots

bool parse_member(std::string_view line, UdpOrderFile& file) {
  const std::string_view name = take_until(line, ' ');
  const auto family = std::find(kFamilyNames.begin(), kFamilyNames.end(), name);
  UdpMember member;
  if (family == kFamilyNames.end() || !take_number(line, member.slot) || !take_number(line, member.pid) ||
      !take_number(line, member.inode) || member.inode == 0 || (line != "sure" && line != "guess")) {
    return false;
  }
  member.is_sure = line == "sure";
  UdpOrder& order = file.families[static_cast<size_t>(family - kFamilyNames.begin())];
  if (order.members().size() == kMaxMembers || order.place_of(member.inode)) {
    return false;
  }
  order.append(member);
  return true;
}

}  // namespace

bool UdpOrder::has_others_than(const std::vector<uint64_t>& living) const {
  return std::any_of(members_.begin(), members_.end(), [&living](const UdpMember& member) {
    return std::find(living.begin(), living.end(), member.inode) == living.end();
  });
}

bool UdpOrder::keep(const std::vector<uint64_t>& living) {
  const auto is_dead = [&living](const UdpMember& member) {
    return std::find(living.begin(), living.end(), member.inode) == living.end();
  };
  if (!has_others_than(living)) {
    return false;
  }
  const auto dead = static_cast<size_t>(std::count_if(members_.begin(), members_.end(), is_dead));
  const size_t count = members_.size() - dead;
  // Only the last socket is ever moved, so those below the new count are where they were.
  std::vector<std::optional<UdpMember>> places(count);
  std::vector<UdpMember> homeless;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (is_dead(members_[i])) {
      continue;
    }
    if (i < count && members_[i].is_sure) {
      places[i] = members_[i];
    } else {
      homeless.push_back(members_[i]);
      homeless.back().is_sure = false;
    }
  }
  members_.clear();
  // The last one moves first, and into the first hole if that was closed first: as good a guess as any.
  for (std::optional<UdpMember>& place : places) {
    if (!place) {
      place = homeless.back();
      homeless.pop_back();
    }
    members_.push_back(*place);
  }
  settle_last_doubt();
  return true;
}

bool UdpOrder::prove(uint64_t inode, size_t place) {
  const std::optional<size_t> guessed = place_of(inode);
  if (!guessed || place >= members_.size() || (*guessed == place && members_[place].is_sure)) {
    return false;
  }
  if (*guessed != place) {
    std::swap(members_[*guessed], members_[place]);
    members_[*guessed].is_sure = false;
  }
  members_[place].is_sure = true;
  settle_last_doubt();
  return true;
}

void UdpOrder::settle_last_doubt() {
  const auto is_guess = [](const UdpMember& member) { return !member.is_sure; };
  if (std::count_if(members_.begin(), members_.end(), is_guess) == 1) {
    std::find_if(members_.begin(), members_.end(), is_guess)->is_sure = true;
  }
}

bool UdpOrder::is_sure() const {
  return std::all_of(members_.begin(), members_.end(), [](const UdpMember& member) { return member.is_sure; });
}

std::optional<size_t> UdpOrder::place_of(uint64_t inode) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [inode](const UdpMember& member) { return member.inode == inode; });
  return found == members_.end() ? std::nullopt : std::optional(static_cast<size_t>(found - members_.begin()));
}

std::string UdpOrderFile::emit() const {
  std::string text = fmt::format("{}\ngeneration {}\n", kTitle, generation);
  for (size_t family = 0; family < families.size(); ++family) {
    for (const UdpMember& member : families[family].members()) {
      text += fmt::format("{} {} {} {} {}\n", kFamilyNames[family], member.slot, member.pid, member.inode,
                          member.is_sure ? "sure" : "guess");
    }
  }
  return text + std::string(kEnd) + "\n";
}

std::optional<UdpOrderFile> UdpOrderFile::parse(std::string_view text) {
  UdpOrderFile file;
  std::string_view generation;
  if (take_until(text, '\n') != kTitle ||
      (generation = take_until(text, '\n'), take_until(generation, ' ')) != "generation" ||
      !take_number(generation, file.generation)) {
    return std::nullopt;
  }
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (line == kEnd) {
      return file;
    }
    if (!parse_member(line, file)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::link
