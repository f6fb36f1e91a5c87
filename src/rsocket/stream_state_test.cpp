#include "rsocket/stream_state.h"

#include <gtest/gtest.h>

#include <array>

namespace ringbolt::rsocket {
namespace {

StreamState in(Phase phase) {
  StreamState state;
  if (phase == Phase::failed) {
    state.fail(ECONNRESET);
  } else {
    state.enter(phase);
  }
  return state;
}

TEST(StreamState, begins_fresh_and_without_an_error) {
  StreamState state;
  EXPECT_TRUE(state.is(Phase::fresh));
  EXPECT_FALSE(state.is_opening());
  EXPECT_FALSE(state.is_over());
  EXPECT_FALSE(state.may_have_data());
  EXPECT_EQ(state.error(), 0);
  EXPECT_EQ(state.take_unreported(), 0);
}

TEST(StreamState, is_opening_from_the_first_step_until_it_is_connected) {
  for (const Phase phase : {Phase::resolving_address, Phase::resolving_route, Phase::connecting, Phase::accepting}) {
    EXPECT_TRUE(in(phase).is_opening()) << static_cast<int>(phase);
  }
  for (const Phase phase :
       {Phase::fresh, Phase::bound, Phase::listening, Phase::connected, Phase::closed, Phase::failed}) {
    EXPECT_FALSE(in(phase).is_opening()) << static_cast<int>(phase);
  }
}

/// The peer's data may overtake the last message of the set-up, and what came in outlives the connection.
TEST(StreamState, may_have_data_from_accepting_on) {
  EXPECT_FALSE(in(Phase::listening).may_have_data());
  EXPECT_FALSE(in(Phase::connecting).may_have_data());
  for (const Phase phase : {Phase::accepting, Phase::connected, Phase::closed, Phase::failed}) {
    EXPECT_TRUE(in(phase).may_have_data()) << static_cast<int>(phase);
  }
}

TEST(StreamState, keeps_its_first_error) {
  StreamState state = in(Phase::connecting);
  state.fail(ECONNREFUSED);
  state.fail(ECONNRESET);
  EXPECT_TRUE(state.is(Phase::failed));
  EXPECT_EQ(state.error(), ECONNREFUSED);
}

TEST(StreamState, that_is_closed_fails_no_more) {
  StreamState state = in(Phase::closed);
  state.fail(ECONNRESET);
  EXPECT_TRUE(state.is(Phase::closed));
  EXPECT_EQ(state.error(), 0);
  EXPECT_EQ(state.take_unreported(), 0);
}

TEST(StreamState, tells_an_error_once) {
  StreamState state = in(Phase::failed);
  EXPECT_EQ(state.take_unreported(), ECONNRESET);
  EXPECT_EQ(state.take_unreported(), 0);
  EXPECT_EQ(state.error(), ECONNRESET) << "calls go on failing for it";
}

TEST(StreamState, tells_no_error_again_that_a_call_has_given) {
  StreamState state = in(Phase::failed);
  EXPECT_EQ(state.report(ECONNABORTED), ECONNABORTED);
  EXPECT_EQ(state.take_unreported(), 0);
}

struct Objections {
  Phase phase;
  int bind, listen, connect;
};

/// By bind(2), listen(2) and connect(2).
TEST(StreamState, objects_to_calls_that_come_at_the_wrong_time) {
  constexpr std::array kAll{
      Objections{Phase::fresh, 0, 0, 0},
      Objections{Phase::bound, EINVAL, 0, 0},
      Objections{Phase::listening, EINVAL, 0, EINVAL},
      Objections{Phase::resolving_address, EINVAL, EINVAL, EALREADY},
      Objections{Phase::resolving_route, EINVAL, EINVAL, EALREADY},
      Objections{Phase::connecting, EINVAL, EINVAL, EALREADY},
      Objections{Phase::accepting, EINVAL, EINVAL, EALREADY},
      Objections{Phase::connected, EINVAL, EINVAL, EISCONN},
      Objections{Phase::closed, EINVAL, EINVAL, EISCONN},
      Objections{Phase::failed, EINVAL, EINVAL, ECONNABORTED},
  };
  for (const Objections& expected : kAll) {
    const StreamState state = in(expected.phase);
    const int phase = static_cast<int>(expected.phase);
    EXPECT_EQ(state.objection_to_bind(), expected.bind) << phase;
    EXPECT_EQ(state.objection_to_listen(), expected.listen) << phase;
    EXPECT_EQ(state.objection_to_connect(), expected.connect) << phase;
  }
}

TEST(StreamState, says_why_nothing_more_can_be_sent) {
  const Directions open;
  Directions shut;
  shut.shut(SHUT_WR);
  EXPECT_EQ(in(Phase::connected).objection_to_send(open), 0);
  EXPECT_EQ(in(Phase::connected).objection_to_send(shut), EPIPE);
  EXPECT_EQ(in(Phase::closed).objection_to_send(open), ECONNRESET) << "the peer has closed it";
  EXPECT_EQ(in(Phase::closed).objection_to_send(shut), EPIPE);
  EXPECT_EQ(in(Phase::failed).objection_to_send(shut), ECONNRESET) << "its error";
}

constexpr short kAll = POLLIN | POLLOUT | POLLRDHUP | POLLPRI;

TEST(PollEvents, of_a_socket_on_its_way_are_none) {
  const PollFacts all{true, true, true};
  for (const Phase phase : {Phase::fresh, Phase::bound, Phase::resolving_address, Phase::connecting}) {
    EXPECT_EQ(poll_events(in(phase), {}, all, kAll), 0) << static_cast<int>(phase);
  }
}

TEST(PollEvents, of_a_listener_say_that_somebody_waits) {
  EXPECT_EQ(poll_events(in(Phase::listening), {}, {}, kAll), 0);
  EXPECT_EQ(poll_events(in(Phase::listening), {}, {.has_request = true}, kAll), POLLIN);
  EXPECT_EQ(poll_events(in(Phase::listening), {}, {.has_request = true}, POLLOUT), 0);
}

TEST(PollEvents, of_a_connection_are_those_asked_for) {
  const StreamState state = in(Phase::connected);
  EXPECT_EQ(poll_events(state, {}, {}, kAll), 0);
  EXPECT_EQ(poll_events(state, {}, {.has_data = true}, kAll), POLLIN);
  EXPECT_EQ(poll_events(state, {}, {.has_room = true}, kAll), POLLOUT);
  EXPECT_EQ(poll_events(state, {}, {.has_data = true, .has_room = true}, POLLOUT | POLLWRNORM), POLLOUT | POLLWRNORM);
  EXPECT_EQ(poll_events(state, {}, {.has_data = true, .has_room = true}, POLLRDNORM), POLLRDNORM);
}

TEST(PollEvents, of_a_half_closed_connection_say_so) {
  const StreamState state = in(Phase::connected);
  Directions directions;
  directions.peer_finished();
  EXPECT_EQ(poll_events(state, directions, {}, kAll), POLLIN | POLLRDHUP) << "reading finds the end";
  EXPECT_EQ(poll_events(state, directions, {.has_room = true}, kAll), POLLIN | POLLRDHUP | POLLOUT);
  directions.shut(SHUT_WR);
  EXPECT_EQ(poll_events(state, directions, {.has_room = true}, kAll), POLLIN | POLLRDHUP) << "writing is refused";
}

/// POLLHUP and POLLERR are told unasked; but a program that takes them for the end would lose what there is to read.
TEST(PollEvents, of_the_end_come_after_the_last_byte) {
  const PollFacts data{.has_data = true};
  EXPECT_EQ(poll_events(in(Phase::closed), {}, data, kAll), POLLIN);
  EXPECT_EQ(poll_events(in(Phase::closed), {}, data, POLLOUT), 0);
  EXPECT_EQ(poll_events(in(Phase::closed), {}, {}, kAll), POLLIN | POLLRDHUP | POLLHUP);
  EXPECT_EQ(poll_events(in(Phase::closed), {}, {}, 0), POLLHUP);
  EXPECT_EQ(poll_events(in(Phase::failed), {}, data, kAll), POLLIN);
  EXPECT_EQ(poll_events(in(Phase::failed), {}, {}, kAll), POLLIN | POLLOUT | POLLERR);
  EXPECT_EQ(poll_events(in(Phase::failed), {}, {}, 0), POLLERR);
}

}  // namespace
}  // namespace ringbolt::rsocket
