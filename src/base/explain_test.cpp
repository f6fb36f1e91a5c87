#include "base/explain.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>

namespace ringbolt::base {
namespace {

Incident refusal_of(const char* call, int error) {
  Incident incident;
  incident.call = call;
  incident.error = error;
  return incident;
}

TEST(Explain, says_call_error_place_why_and_fix) {
  EXPECT_EQ(
      explanation_text(refusal_of("ibv_modify_qp", EINVAL), {"a is 5", "set it to 1", ""}, "client.c:88 in main()"),
      "ringbolt: ibv_modify_qp: EINVAL (Invalid argument), at client.c:88 in main()\n  why: a is 5\n  fix: set "
      "it to 1\n");
  EXPECT_NE(explanation_text(refusal_of("f", -3), {"w", "x", ""}, "p").find("errno -3"), std::string::npos);
}

Incident failed_send() {
  Incident incident;
  incident.call = "IBV_WR_SEND";
  incident.object = "queue pair 0x11";
  incident.detail = "wr_id 7";
  incident.status = "IBV_WC_REM_OP_ERR";
  return incident;
}

TEST(Explain, says_of_a_request_where_it_was_posted_and_what_the_peer_knows) {
  EXPECT_EQ(explanation_text(failed_send(), {"a", "c", "b"}, "x.c:1", 3),
            "ringbolt: IBV_WR_SEND of queue pair 0x11, wr_id 7: IBV_WC_REM_OP_ERR, posted at x.c:1 (and 3 times more "
            "since it was told)\n  why: a\n  peer: b\n  fix: c\n");
}

TEST(Explain, is_a_line_of_json) {
  const std::string line = explanation_json(failed_send(), {"a \"b\"", "c", ""}, "x.c:1");
  EXPECT_NE(line.find(R"("call": "IBV_WR_SEND", "status": "IBV_WC_REM_OP_ERR", "object": "queue pair 0x11", )"
                      R"("detail": "wr_id 7", "posted_at": "x.c:1", "why": "a \"b\"", "fix": "c"})"),
            std::string::npos)
      << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  Incident watched = failed_send();
  watched.events = {"posted", "a \"b\""};
  EXPECT_NE(explanation_json(watched, {"a", "c", ""}, "x.c:1", 3)
                .find(R"("fix": "c", "events": ["posted", "a \"b\""], "held_back": 3})"),
            std::string::npos);
  EXPECT_NE(explanation_json(refusal_of("f", EBUSY), {"a", "c", ""}, "p").find("\"errno\": 16, \"place\": \"p\""),
            std::string::npos);
}

TEST(Explain, keeps_errno_also_where_there_is_no_memory_for_words) {
  set_explanation_witness([](std::string_view, std::string_view) -> std::vector<std::string> {
    errno = ENOMEM;
    throw std::bad_alloc();
  });
  errno = EBUSY;
  explain(EINVAL, "ibv_reg_mr", {"a", "b"});
  EXPECT_EQ(errno, EBUSY);
  explain(failed_send(), {"a", "b"});
  EXPECT_EQ(errno, EBUSY);
  set_explanation_witness(nullptr);
}

TEST(Explain, makes_no_words_for_nobody) {
  EXPECT_EQ(refused(EBUSY, "f",
                    []() -> Explanation {
                      ADD_FAILURE() << "nobody has asked";
                      return {};
                    }),
            EBUSY);
}

}  // namespace
}  // namespace ringbolt::base
