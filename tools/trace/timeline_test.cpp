#include "trace/timeline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "trace/report.h"

namespace ringbolt::tools::trace_command {
namespace {

using nlohmann::json;
using trace::Kind;

constexpr uint8_t kSend = 2;
constexpr uint8_t kRecv = 0x80;

/// A process that says what it did by nanoseconds.
class Played {
 public:
  Played(const char* program, uint32_t pid, uint32_t qpn, uint32_t peer_qpn, uint8_t gid, uint8_t peer_gid) {
    one_.file.program = program;
    one_.file.pid = pid;
    one_.path = "played";
    trace::QueuePair pair;
    pair.qpn = qpn;
    pair.peer_qpn = peer_qpn;
    pair.type = 2;
    pair.state = 3;
    pair.send_queue = pair.receive_queue = 9;
    pair.gid[0] = gid;
    pair.peer_gid[0] = peer_gid;
    one_.file.queue_pairs = {pair};
  }
  Played& add(uint64_t us, Kind kind, uint64_t wr_id = 0, uint8_t code = 0, uint32_t number = 0, uint8_t flags = 0,
              uint8_t status = 0) {
    trace::Record record;
    record.ticks = 1'000'000 + us * 1000;
    record.kind = kind;
    record.wr_id = wr_id;
    record.code = code;
    record.number = number;
    record.flags = flags;
    record.status = status;
    record.bytes = 64;
    record.object = kind == Kind::armed || kind == Kind::event_taken ? 9 : one_.file.queue_pairs[0].qpn;
    one_.file.events.push_back(record);
    return *this;
  }
  Played& tell(uint64_t us, const char* text) {
    const auto number = static_cast<uint32_t>(one_.file.words.size());
    one_.file.words.push_back({number, 1'000'000 + us * 1000, one_.file.queue_pairs[0].qpn, true, text});
    return add(us, Kind::words, 0, 0, number);
  }
  Recording recording() const { return one_; }

 private:
  Recording one_;
};

Played sender() {
  Played one("<b>sender</b>", 11, 0x4001, 0x8001, 1, 2);
  one.add(10, Kind::post_send, 1, kSend, 1, 0);
  one.add(20, Kind::post_send, 2, kSend, 2, trace::kSignaled);
  one.add(30, Kind::armed);
  one.add(50, Kind::completion_polled, 2, 0);
  one.add(60, Kind::post_send, 3, kSend, 3, trace::kSignaled);
  return one;
}

Played receiver() {
  Played one("receiver", 12, 0x8001, 0x4001, 2, 1);
  one.add(1, Kind::post_receive, 7);
  one.add(2, Kind::post_receive, 8);
  one.add(25, Kind::completion_polled, 7, kRecv, 1);
  one.add(40, Kind::completion_polled, 8, kRecv, 2);
  return one;
}

Timeline both() { return make_timeline({sender().recording(), receiver().recording()}, {}); }

TEST(TraceTimeline, requests_are_matched_with_their_completions) {
  const Timeline timeline = both();
  ASSERT_EQ(timeline.sides.size(), 2U);
  const Side& side = timeline.sides[0];
  ASSERT_EQ(side.spans.size(), 3U);
  EXPECT_EQ(side.spans[0].polled, 3U);  // unsignaled: over with the next one that is signaled
  EXPECT_EQ(side.spans[1].polled, 3U);
  EXPECT_EQ(side.spans[2].polled, std::nullopt);
  EXPECT_EQ(side.under_way(true).size(), 1U);
  EXPECT_EQ(timeline.sides[1].under_way(false).size(), 0U);
}

TEST(TraceTimeline, messages_lead_from_post_to_the_peers_poll) {
  const Timeline timeline = both();
  EXPECT_EQ(timeline.sides[0].peer, 1U);
  EXPECT_EQ(timeline.sides[1].peer, 0U);
  ASSERT_EQ(timeline.arrows.size(), 2U);  // the third has not come
  EXPECT_EQ(timeline.arrows[1].sent, 1U);
  EXPECT_EQ(timeline.arrows[1].received, 3U);
}

TEST(TraceTimeline, a_post_whose_record_was_overwritten_leaves_its_completion_alone) {
  Played one("one", 11, 0x4001, 0, 1, 0);
  one.add(1, Kind::completion_polled, 5, 0);
  one.add(2, Kind::post_send, 6, kSend, 1, trace::kSignaled);
  one.add(3, Kind::completion_polled, 6, 0);
  const Timeline timeline = make_timeline({one.recording()}, {});
  ASSERT_EQ(timeline.sides.at(0).spans.size(), 1U);
  EXPECT_EQ(timeline.sides[0].spans[0].polled, 2U);
}

TEST(TraceTimeline, a_failed_send_completes_though_it_asked_for_none_and_a_reset_drops_what_is_left) {
  Played one("one", 11, 0x4001, 0, 1, 0);
  one.add(1, Kind::post_send, 5, kSend, 1, 0);
  one.add(2, Kind::post_send, 6, kSend, 2, 0);
  one.add(3, Kind::completion_polled, 5, 0, 0, 0, 12);
  one.add(4, Kind::state, 0, 0);
  const Timeline timeline = make_timeline({one.recording()}, {});
  EXPECT_EQ(timeline.sides.at(0).spans[0].polled, 2U);
  EXPECT_TRUE(timeline.sides[0].spans[1].is_dropped);
  EXPECT_EQ(timeline.sides[0].under_way(true).size(), 0U);
}

TEST(TraceTimeline, what_is_chosen_brings_its_peer_along) {
  const Played stranger("stranger", 13, 0xc001, 0x9999, 3, 4);
  Played busy = stranger;
  busy.add(5, Kind::post_receive, 1);
  const std::vector<Recording> all{sender().recording(), receiver().recording(), busy.recording()};
  EXPECT_EQ(make_timeline(all, {}).sides.size(), 3U);
  Selection one;
  one.queue_pair = 0x4001;
  EXPECT_EQ(make_timeline(all, one).sides.size(), 2U);
  one = {};
  one.pid = 13;
  EXPECT_EQ(make_timeline(all, one).sides.size(), 1U);
  one = {};
  one.since_s = 0.000'025;
  const Timeline late = make_timeline(all, one);
  EXPECT_EQ(steps_of(late, conversations_of(late)[0], 0).size(), 3U);  // from 35 us on
}

TEST(TraceReport, text_is_by_time_and_says_what_is_under_way) {
  const std::string text = timeline_text(both(), 0);
  EXPECT_NE(text.find("queue pair 0x8001 of receiver (12), RC, RTS"), std::string::npos) << text;
  EXPECT_NE(text.find("1 send under way, the oldest IBV_WR_SEND, wr_id 0x3, posted, 0.0 us before the end"),
            std::string::npos)
      << text;
  EXPECT_LT(text.find("polled IBV_WC_RECV"), text.find("armed"));
  EXPECT_EQ(text.find(" \n"), std::string::npos);
  EXPECT_NE(timeline_text(both(), 2).find("(7 events before; --last 0 shows all)"), std::string::npos);
}

TEST(TraceReport, json_has_every_event) {
  const json all = json::parse(timeline_json(both()));
  EXPECT_EQ(all["processes"].size(), 2U);
  ASSERT_EQ(all["queue_pairs"].size(), 2U);
  EXPECT_EQ(all["queue_pairs"][0]["events"].size(), 5U);
  EXPECT_EQ(all["queue_pairs"][0]["peer_pid"], 12);
  EXPECT_EQ(all["queue_pairs"][0]["sends_under_way"], 1);
  EXPECT_EQ(all["queue_pairs"][1]["events"][3]["kind"], "completion_polled");
  EXPECT_DOUBLE_EQ(all["queue_pairs"][1]["events"][3]["us"], 39.0);
}

/// As the trace event format has it: what each phase must have, spans of a track side by side, arrows within spans.
TEST(TraceReport, chrome_events_are_well_formed) {
  const json all = json::parse(chrome_json(both()));
  std::map<std::pair<uint64_t, uint64_t>, std::vector<std::pair<double, double>>> spans;
  std::map<uint64_t, int> arrows;
  for (const json& one : all["traceEvents"]) {
    const std::string phase = one["ph"];
    ASSERT_TRUE(one.contains("pid") && one.contains("tid") && one.contains("name")) << one;
    if (phase == "M") {
      EXPECT_TRUE(one["args"].contains("name"));
      continue;
    }
    ASSERT_GE(one["ts"].get<double>(), 0) << one;
    if (phase == "X") {
      ASSERT_GE(one["dur"].get<double>(), 0);
      spans[{one["pid"], one["tid"]}].push_back({one["ts"], one["ts"].get<double>() + one["dur"].get<double>()});
    } else if (phase == "i") {
      EXPECT_EQ(one["s"], "t");
    } else {
      ASSERT_TRUE(phase == "s" || phase == "f") << one;
      arrows[one["id"]] += phase == "s" ? 1 : 100;
    }
  }
  size_t count = 0;
  for (auto& [track, of] : spans) {
    count += of.size();
    std::ranges::sort(of);
    for (size_t i = 1; i < of.size(); ++i) {
      EXPECT_LE(of[i - 1].second, of[i].first);
    }
  }
  EXPECT_EQ(count, 5U);
  EXPECT_EQ(arrows.size(), 2U);
  EXPECT_TRUE(std::ranges::all_of(arrows, [](const auto& one) { return one.second == 101; }));
  for (const json& one : all["traceEvents"]) {
    if (one["ph"] == "s" || one["ph"] == "f") {
      const auto& of = spans.at({one["pid"], one["tid"]});
      const double at = one["ts"];
      EXPECT_TRUE(std::ranges::any_of(of, [&](const auto& span) { return span.first <= at && at <= span.second; }));
    }
  }
}

TEST(TraceReport, page_is_escaped_and_shows_findings_with_both_ends) {
  Played told = sender();
  told.tell(70, "==11==RINGBOLT: <script>alert(1)</script> on queue pair 0x4001");
  const std::string page = timeline_page(make_timeline({told.recording(), receiver().recording()}, {}), 60);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<b>sender"), std::string::npos);
  EXPECT_NE(page.find("&lt;script"), std::string::npos);
  EXPECT_NE(page.find("<h2>Finding"), std::string::npos);
  EXPECT_NE(page.find("class=\"message\""), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);  // nothing from elsewhere
}

TEST(TraceReport, nothing_recorded_is_no_text) { EXPECT_EQ(timeline_text(make_timeline({}, {}), 10), ""); }

}  // namespace
}  // namespace ringbolt::tools::trace_command
