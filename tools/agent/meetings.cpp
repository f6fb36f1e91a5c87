#include "agent/meetings.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/locked_file.h"
#include "cluster/limits.h"
#include "ranks/start.h"

namespace ringbolt::tools::agent {
namespace {

constexpr const char* kHead = "ringbolt-meetings 1";
constexpr uint64_t kPatienceMs = 5'000;  // others hold the file for microseconds, unless one was stopped just then

bool names(const Meeting& meeting, uint32_t node) { return std::ranges::binary_search(meeting.nodes, node); }

std::optional<Meeting> meeting_of(const MeetingsText& text, uint32_t node) {
  const auto found = std::ranges::find_if(text.meetings, [&](const Meeting& one) { return names(one, node); });
  return found == text.meetings.end() ? std::nullopt : std::optional(*found);
}

/// What is damaged says nothing: agents then call each other anew.
MeetingsText read(const base::LockedFile& file) {
  const std::optional<std::string> text = file.read();
  return (text ? parse_meetings(*text) : std::nullopt).value_or(MeetingsText());
}

}  // namespace

std::string emit(const MeetingsText& text) {
  std::string lines = fmt::format("{}\nlast {}\n", kHead, text.last);
  for (const Meeting& meeting : text.meetings) {
    lines += fmt::format("meeting {} {} {}\n", meeting.number, meeting.port, fmt::join(meeting.nodes, " "));
  }
  return lines;
}

std::optional<MeetingsText> parse_meetings(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::string word;
  MeetingsText found;
  if (!std::getline(lines, line) || line != kHead || !(lines >> word >> found.last) || word != "last") {
    return std::nullopt;
  }
  while (lines >> word && word == "meeting" && std::getline(lines, line)) {
    std::istringstream words(line);
    Meeting meeting;
    words >> meeting.number >> meeting.port;
    for (uint32_t node = 0; words >> node;) {
      meeting.nodes.push_back(node);
    }
    found.meetings.push_back(std::move(meeting));
  }
  return emit(found) == text ? std::optional(std::move(found)) : std::nullopt;
}

uint32_t Meetings::last() const {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  return file.is_held() ? read(file).last : 0;
}

std::optional<Meeting> Meetings::of(uint32_t node) const {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  return file.is_held() ? meeting_of(read(file), node) : std::nullopt;
}

Meeting Meetings::call(uint32_t node, const std::vector<uint32_t>& nodes, uint32_t known) const {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  if (!file.is_held()) {
    throw base::Error(file.error(), "lock", path_);
  }
  MeetingsText text = read(file);
  if (std::optional<Meeting> others = meeting_of(text, node); others && others->number > known) {
    return *std::move(others);
  }
  Meeting made{std::max(text.last, known) + 1, ranks::free_port(), nodes};
  text.last = made.number;
  std::erase_if(text.meetings, [&](const Meeting& one) {
    return std::ranges::any_of(nodes, [&](uint32_t called) { return names(one, called); });
  });
  text.meetings.push_back(made);
  if (const int error = file.write(emit(text))) {
    throw base::Error(error, "write", path_);
  }
  return made;
}

}  // namespace ringbolt::tools::agent
