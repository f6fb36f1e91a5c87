#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "trace/report.h"
#include "trace/words.h"

namespace ringbolt::tools::trace_command {
namespace {

using nlohmann::json;
using trace::Kind;

/// What a program takes for a text may be anything.
std::string dumped(const json& all, int indent) {
  return all.dump(indent, ' ', true, json::error_handler_t::replace) + "\n";
}

const char* stem_of(Kind kind) {
  constexpr std::array<const char*, trace::kKinds> kStems = {
      "none",         "post_send",       "post_receive",       "post_shared",
      "refused",      "completion_made", "completion_polled",  "armed",
      "event_raised", "event_taken",     "event_acknowledged", "state",
      "packet_sent",  "packet_came",     "packet_dropped",     "starved",
      "not_ready",    "resent",          "timed_out",          "sequence_error",
      "duplicate",    "fault",           "async_event",        "words"};
  return kStems[static_cast<size_t>(kind)];
}

json event_json(const Timeline& timeline, const Side& side, const Moment& moment) {
  const Recording& recording = timeline.recordings[side.recording];
  const trace::Record& record = moment.record;
  json one{{"us", since_us(timeline, moment.ns)}, {"pid", recording.file.pid},    {"thread", record.thread},
           {"queue_pair", side.pair.qpn},         {"kind", stem_of(record.kind)}, {"what", trace::event_name(record)}};
  const bool has_request = record.kind == Kind::post_send || record.kind == Kind::post_receive ||
                           record.kind == Kind::post_shared || record.kind == Kind::completion_polled;
  if (has_request) {
    one["wr_id"] = record.wr_id;
    one["bytes"] = record.bytes;
  }
  if (record.kind == Kind::completion_polled) {
    one["status"] = trace::status_name(record.status);
  }
  const std::string details = record.kind == Kind::words ? told_text(recording, record) : trace::event_details(record);
  if (!details.empty()) {
    one["details"] = details;
  }
  if (const std::string place = place_text(recording, record.place); !place.empty()) {
    one["place"] = place;
  }
  return one;
}

json side_json(const Timeline& timeline, const Side& side) {
  json one{{"pid", timeline.recordings[side.recording].file.pid},
           {"number", side.pair.qpn},
           {"type", type_name(side.pair.type)},
           {"state", trace::state_name(side.pair.state)},
           {"destroyed", side.pair.is_gone},
           {"peer_number", side.pair.peer_qpn},
           {"peer_pid", nullptr},
           {"sends_under_way", side.under_way(true).size()},
           {"receives_posted", side.under_way(false).size()},
           {"events", json::array()}};
  if (side.peer) {
    one["peer_pid"] = timeline.recordings[timeline.sides[*side.peer].recording].file.pid;
  }
  for (const Moment& moment : side.events) {
    if (moment.ns >= timeline.begin_ns) {
      one["events"].push_back(event_json(timeline, side, moment));
    }
  }
  return one;
}

/// Tracks of a queue pair: one of its events, then as many as requests are under way at a time.
class Tracks {
 public:
  explicit Tracks(uint64_t first) : first_(first) {}

  uint64_t take(uint64_t begin_ns, uint64_t end_ns) {
    size_t at = 0;
    while (at < free_from_.size() && free_from_[at] > begin_ns) {
      ++at;
    }
    if (at == free_from_.size()) {
      free_from_.push_back(0);
    }
    free_from_[at] = end_ns;
    return first_ + at;
  }
  size_t count() const { return free_from_.size(); }

 private:
  const uint64_t first_;
  std::vector<uint64_t> free_from_;
};

/// Of one timeline.
class Chrome {
 public:
  explicit Chrome(const Timeline& timeline) : timeline_(timeline) {}

  json all() {
    for (const Recording& one : timeline_.recordings) {
      name(one.file.pid, 0, "process_name", one.label() + ", " + one.fate());
    }
    for (size_t i = 0; i < timeline_.sides.size(); ++i) {
      add(i);
    }
    for (size_t i = 0; i < timeline_.arrows.size(); ++i) {
      add_arrow(timeline_.arrows[i], i + 1);
    }
    return {{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ns"}};
  }

 private:
  static constexpr uint64_t kTracks = 100'000;  // of a side

  uint32_t pid(size_t side) const { return timeline_.recordings[timeline_.sides[side].recording].file.pid; }
  double us(uint64_t ns) const { return since_us(timeline_, ns); }
  static uint64_t track(size_t side) { return (side + 1) * kTracks; }

  void name(uint32_t pid, uint64_t tid, const char* what, const std::string& text) {
    events_.push_back({{"ph", "M"}, {"pid", pid}, {"tid", tid}, {"name", what}, {"args", {{"name", text}}}});
  }

  void add(size_t index) {
    const Side& side = timeline_.sides[index];
    name(pid(index), track(index), "thread_name", fmt::format("queue pair {:#x}", side.pair.qpn));
    for (const bool is_send : {true, false}) {
      Tracks tracks(track(index) + 1 + (is_send ? 0 : kTracks / 2));
      for (const Span& span : side.spans) {
        if (span.is_send == is_send) {
          add_span(index, span, tracks);
        }
      }
      for (size_t i = 0; i < tracks.count(); ++i) {
        name(pid(index), track(index) + 1 + (is_send ? 0 : kTracks / 2) + i, "thread_name",
             fmt::format("queue pair {:#x} {}", side.pair.qpn, is_send ? "sends" : "receives"));
      }
    }
    for (const Moment& moment : side.events) {
      add_instant(index, moment);
    }
  }

  void add_span(size_t index, const Span& span, Tracks& tracks) {
    const Side& side = timeline_.sides[index];
    const Moment& post = side.events[span.posted];
    if (post.ns < timeline_.begin_ns) {
      return;
    }
    const uint64_t end = span.polled ? side.events[*span.polled].ns : timeline_.end_ns;
    json args{{"wr_id", fmt::format("{:#x}", post.record.wr_id)}, {"bytes", post.record.bytes}};
    if (const std::string place = place_text(timeline_.recordings[side.recording], post.record.place); !place.empty()) {
      args["posted at"] = place;
    }
    args["status"] = !span.polled ? (span.is_dropped ? "dropped by a reset" : "under way")
                                  : trace::status_name(side.events[*span.polled].record.status);
    const uint64_t tid = tracks.take(post.ns, std::max(end, post.ns + 1));
    (span.is_send ? starts_[{index, span.posted}] : ends_[{index, span.polled.value_or(SIZE_MAX)}]) = tid;
    events_.push_back({{"ph", "X"},
                       {"pid", pid(index)},
                       {"tid", tid},
                       {"ts", us(post.ns)},
                       {"dur", static_cast<double>(end - std::min(end, post.ns)) / 1e3},
                       {"cat", span.is_send ? "send" : "receive"},
                       {"name", span.is_send ? trace::send_opcode_name(post.record.code) : "receive"},
                       {"args", std::move(args)}});
  }

  void add_instant(size_t index, const Moment& moment) {
    if (moment.record.kind == Kind::post_send || moment.record.kind == Kind::post_receive ||
        moment.record.kind == Kind::post_shared || moment.ns < timeline_.begin_ns) {
      return;  // the first three are spans
    }
    const Recording& recording = timeline_.recordings[timeline_.sides[index].recording];
    const std::string details =
        moment.record.kind == Kind::words ? told_text(recording, moment.record) : trace::event_details(moment.record);
    events_.push_back({{"ph", "i"},
                       {"s", "t"},
                       {"pid", pid(index)},
                       {"tid", track(index)},
                       {"ts", us(moment.ns)},
                       {"cat", stem_of(moment.record.kind)},
                       {"name", trace::event_name(moment.record)},
                       {"args", {{"details", details}}}});
  }

  /// From within the span of the send to within that of the receive.
  void add_arrow(const Arrow& arrow, size_t id) {
    const auto start = starts_.find({arrow.from, arrow.sent});
    const auto end = ends_.find({arrow.to, arrow.received});
    if (start == starts_.end() || end == ends_.end()) {
      return;
    }
    const uint64_t sent = timeline_.sides[arrow.from].events[arrow.sent].ns;
    const uint64_t received = timeline_.sides[arrow.to].events[arrow.received].ns;
    events_.push_back({{"ph", "s"},
                       {"id", id},
                       {"pid", pid(arrow.from)},
                       {"tid", start->second},
                       {"ts", us(sent)},
                       {"cat", "message"},
                       {"name", "message"}});
    events_.push_back({{"ph", "f"},
                       {"bp", "e"},
                       {"id", id},
                       {"pid", pid(arrow.to)},
                       {"tid", end->second},
                       {"ts", us(received)},
                       {"cat", "message"},
                       {"name", "message"}});
  }

  const Timeline& timeline_;
  json events_ = json::array();
  std::map<std::pair<size_t, size_t>, uint64_t> starts_;  // tracks of sends, by side and post
  std::map<std::pair<size_t, size_t>, uint64_t> ends_;    // of receives, by side and poll
};

}  // namespace

std::string timeline_json(const Timeline& timeline) {
  json processes = json::array();
  for (const Recording& one : timeline.recordings) {
    processes.push_back({{"pid", one.file.pid},
                         {"program", one.file.program},
                         {"node", one.file.node},
                         {"cluster", one.file.cluster},
                         {"state", one.fate()},
                         {"file", one.path},
                         {"events_overwritten", one.file.overwritten}});
  }
  json pairs = json::array();
  for (const Side& side : timeline.sides) {
    pairs.push_back(side_json(timeline, side));
  }
  return dumped({{"processes", std::move(processes)}, {"queue_pairs", std::move(pairs)}}, 1);
}

std::string chrome_json(const Timeline& timeline) { return dumped(Chrome(timeline).all(), -1); }

}  // namespace ringbolt::tools::trace_command
