#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "trace/report.h"
#include "trace/words.h"

namespace ringbolt::tools::trace_command {
namespace {

using Row = std::array<std::string, 5>;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Row row_of(const Timeline& timeline, const Step& step) {
  const Side& side = timeline.sides[step.side];
  const Recording& recording = timeline.recordings[side.recording];
  const Moment& moment = side.events[step.event];
  const std::string who = recording.file.node.empty() ? std::to_string(recording.file.pid)
                                                      : fmt::format("{}:{}", recording.file.node, recording.file.pid);
  std::string details = moment.record.kind == trace::Kind::words ? first_line(told_text(recording, moment.record))
                                                                 : trace::event_details(moment.record);
  return {fmt::format("{:.3f}", since_us(timeline, moment.ns)), who, trace::event_name(moment.record),
          std::move(details), place_text(recording, moment.record.place)};
}

std::string lines_of(const std::vector<Row>& rows) {
  std::array<size_t, 5> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      constexpr size_t kMostWidth = 56;
      widths[i] = std::max(widths[i], std::min(row[i].size(), kMostWidth));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = fmt::format("  {:>{}}  {:<{}}  {:<{}}  {:<{}}  {}", row[0], widths[0], row[1], widths[1], row[2],
                                   widths[2], row[3], widths[3], row[4]);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string age(const Timeline& timeline, uint64_t ns) {
  const double us = static_cast<double>(timeline.end_ns - std::min(ns, timeline.end_ns)) / 1e3;
  return us < 1e3   ? fmt::format("{:.1f} us", us)
         : us < 1e6 ? fmt::format("{:.1f} ms", us / 1e3)
                    : fmt::format("{:.1f} s", us / 1e6);
}

}  // namespace

std::string side_text(const Timeline& timeline, size_t side) {
  const Side& one = timeline.sides[side];
  const Recording& recording = timeline.recordings[one.recording];
  return fmt::format("queue pair {:#x} of {}, {}, {}, {}", one.pair.qpn, recording.label(), type_name(one.pair.type),
                     one.pair.is_gone ? "destroyed" : trace::state_name(one.pair.state), recording.fate());
}

std::string under_way_text(const Timeline& timeline, size_t side) {
  const Side& one = timeline.sides[side];
  const Recording& recording = timeline.recordings[one.recording];
  const auto sends = one.under_way(true);
  const auto receives = one.under_way(false);
  std::string text = fmt::format("{} send{} under way", sends.size(), sends.size() == 1 ? "" : "s");
  if (!sends.empty()) {
    const Moment& post = one.events[sends.front()->posted];
    const std::string place = place_text(recording, post.record.place);
    text += fmt::format(", the oldest {}, wr_id {:#x}, posted{}{}, {} before the end",
                        trace::send_opcode_name(post.record.code), post.record.wr_id, place.empty() ? "" : " at ",
                        place, age(timeline, post.ns));
  }
  return text + (one.pair.shared_queue != 0
                     ? "; receives are in a shared queue"
                     : fmt::format("; {} receive{} posted", receives.size(), receives.size() == 1 ? "" : "s"));
}

std::string timeline_text(const Timeline& timeline, size_t most) {
  std::string text;
  for (const Conversation& one : conversations_of(timeline)) {
    const auto steps = steps_of(timeline, one, most);
    if (steps.empty()) {
      continue;
    }
    text += text.empty() ? "" : "\n";
    text += side_text(timeline, one.left) + "\n";
    text += one.right ? side_text(timeline, *one.right) + "\n"
            : timeline.sides[one.left].pair.peer_qpn != 0
                ? fmt::format("queue pair {:#x} of a process that was not recorded\n",
                              timeline.sides[one.left].pair.peer_qpn)
                : "";
    const std::vector<size_t> ends = one.right ? std::vector{one.left, *one.right} : std::vector{one.left};
    for (const size_t side : ends) {
      const Recording& recording = timeline.recordings[timeline.sides[side].recording];
      if (recording.file.overwritten != 0) {
        text += fmt::format("  (older events of {} were overwritten; --record=SIZE keeps more)\n", recording.label());
      }
    }
    const size_t all = steps_of(timeline, one, 0).size();
    text += all > steps.size() ? fmt::format("  ({} events before; --last 0 shows all)\n", all - steps.size()) : "";
    std::vector<Row> rows{{"us", "process", "what", "", "where"}};
    std::ranges::transform(steps, std::back_inserter(rows), [&](const Step& step) { return row_of(timeline, step); });
    text += lines_of(rows);
    for (const size_t side : ends) {
      text += fmt::format("  {}: {}\n", timeline.recordings[timeline.sides[side].recording].label(),
                          under_way_text(timeline, side));
    }
  }
  return text;
}

}  // namespace ringbolt::tools::trace_command
