#include <gtest/gtest.h>

#include "sanitizer/portable.h"
#include "sanitizer/reports.h"
#include "sanitizer/spans.h"
#include "sanitizer/suppressions.h"
#include "sanitizer/wish.h"

namespace ringbolt::sanitizer {
namespace {

TEST(Wish, names_kinds) {
  EXPECT_EQ(parse_wish(""), Wish{});
  EXPECT_EQ(parse_wish("off"), Wish{});
  const Wish on = parse_wish("on");
  EXPECT_TRUE(on.has(Kind::buffers) && on.has(Kind::races) && !on.has(Kind::portable));
  EXPECT_TRUE(parse_wish("all").has(Kind::portable));
  const Wish some = parse_wish("early,objects");
  EXPECT_TRUE(some.has(Kind::early) && some.has(Kind::objects) && !some.has(Kind::buffers));
  EXPECT_EQ(parse_wish("early,xyz,,1").unknown, "xyz, 1");
}

TEST(Suppressions, match_file_function_or_rule) {
  std::vector<std::string> objections;
  const Suppressions known("# remark\n buffers : client*.c \n*:send_*\nearly:some-rule # why\n\n", objections);
  EXPECT_TRUE(objections.empty());
  EXPECT_TRUE(known.match("buffers", "x", "client_a.c:12 in main()"));
  EXPECT_FALSE(known.match("queues", "x", "client_a.c:12 in main()"));
  EXPECT_TRUE(known.match("queues", "x", "a.c:12 in send_all()"));
  EXPECT_TRUE(known.match("early", "some-rule", "prog+0x12"));
  EXPECT_FALSE(known.match("early", "some-rules", "prog+0x12"));
  const Suppressions wrong("nonsense\nkinds:a\nbuffers:\n", objections);
  ASSERT_EQ(objections.size(), 3U);
  EXPECT_EQ(objections[1], "line 2: \"kinds:a\" is not KIND:GLOB, as in buffers:client.c");
  EXPECT_FALSE(wrong.match("buffers", "a", "a"));
}

TEST(Place, has_parts) {
  EXPECT_EQ(split_place("client.c:88 in connect_to()"), (Place{"client.c", 88, "connect_to"}));
  EXPECT_EQ(split_place("client.c:88"), (Place{"client.c", 88, ""}));
  EXPECT_EQ(split_place("client+0x1a2b"), (Place{"client+0x1a2b", 0, ""}));
  EXPECT_EQ(split_place("somewhere"), (Place{"somewhere", 0, ""}));
  EXPECT_EQ(split_place("odd:name.c:7 in f()"), (Place{"odd:name.c", 7, "f"}));
  EXPECT_EQ(split_place(""), Place{});
}

TEST(Finding, is_a_paragraph_and_a_line) {
  const Finding finding{Kind::early, "some-rule", "what", "numbers \"1\"", {{"posted", {}}, {"seen", {}}}, "fix"};
  const std::vector<std::string> places{"a.c:1 in f()", "b+0x2"};
  EXPECT_EQ(finding_text(finding, places, 7),
            "==7==RINGBOLT: early: what (some-rule)\n  what: numbers \"1\"\n  posted at: a.c:1 in f()\n"
            "  seen at: b+0x2\n  fix: fix\n");
  EXPECT_EQ(
      finding_json(finding, places, 7),
      R"({"pid":7,"kind":"early","rule":"some-rule","what":"what","numbers":"numbers \"1\"","fix":"fix","places":[)"
      R"({"done":"posted","file":"a.c","line":1,"function":"f"},{"done":"seen","file":"b+0x2","line":0,"function":""}]})"
      "\n");
  EXPECT_TRUE(finding_json(finding, places, 7, {"post \"x\"", "polled"})
                  .ends_with(R"("function":""}],"events":["post \"x\"","polled"]})"
                             "\n"));
}

TEST(Spans, overlap_by_a_byte_and_not_by_none) {
  Spans spans;
  const auto any = [](uint32_t) { return true; };
  spans.add(100, 10, 1);
  spans.add(0, 1000, 2);
  spans.add(500, 0, 3);
  EXPECT_EQ(spans.overlap(109, 1, [](uint32_t number) { return number == 1; }), 1U);
  EXPECT_EQ(spans.overlap(110, 5, [](uint32_t number) { return number == 1; }), std::nullopt);
  EXPECT_EQ(spans.overlap(90, 10, [](uint32_t number) { return number == 1; }), std::nullopt);
  EXPECT_EQ(spans.overlap(999, 1, any), 2U);
  EXPECT_EQ(spans.overlap(1000, 1, any), std::nullopt);
  EXPECT_EQ(spans.overlap(500, 0, any), std::nullopt);
  spans.remove(0, 2);
  EXPECT_EQ(spans.overlap(999, 1, any), std::nullopt);
  spans.remove(100, 1);
  EXPECT_TRUE(spans.is_empty());
  spans.add(UINT64_MAX - 10, 11, 4);
  EXPECT_EQ(spans.overlap(UINT64_MAX, 1, any), 4U);
}

TEST(Portability, names_all_machines_at_once) {
  const Portability all;
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {4096, 4, 1, 1, 0};
  EXPECT_EQ(all.of_queue_pair(wanted),
            "tn3205, apple: no RC queue pairs, UC alone; usb4-linux: 1024 requests a queue at most, not 4096");
  wanted.qp_type = IBV_QPT_UC;
  wanted.cap = {64, 64, 1, 1, 0};
  EXPECT_EQ(all.of_queue_pair(wanted), "");
  EXPECT_EQ(all.of_queue(4096, false), "");
  EXPECT_NE(all.of_queue(4097, false), "");
  EXPECT_EQ(all.of_queue(16, true), "tn3205, apple: no completion channels: poll");
  EXPECT_EQ(all.of_request(IBV_WR_SEND, 1U << 20U), "");
  EXPECT_EQ(all.of_request(IBV_WR_SEND, 1U << 24U), "tn3205, apple: 16773120 bytes a message at most, not 16777216");
  EXPECT_EQ(all.of_request(IBV_WR_RDMA_READ, 8), "tn3205, apple: no READ");
}

}  // namespace
}  // namespace ringbolt::sanitizer
