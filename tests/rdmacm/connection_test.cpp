// Connections from the first call to the last event.

#include <netinet/in.h>

#include <rdma/rdma_verbs.h>

#include "support.h"

namespace ringbolt::rdmacm_test {
namespace {

ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init), 0);
  return attributes.qp_state;
}

TEST(Connection, carries_private_data_and_parameters_both_ways) {
  Channel servers;
  Channel clients;
  int context = 0;
  rdma_cm_id* listener = listen(servers, RDMA_PS_TCP, 16, &context);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  make_qp(client);
  rdma_conn_param asking = parameters("hello");
  asking.responder_resources = 3;
  asking.initiator_depth = 2;
  asking.retry_count = 5;
  asking.rnr_retry_count = 6;
  asking.flow_control = 1;
  ASSERT_EQ(rdma_connect(client, &asking), 0);
  const Seen request = servers.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request.listener, listener);
  EXPECT_EQ(request.id->context, &context);
  EXPECT_NE(request.id->verbs, nullptr);
  EXPECT_EQ(request.data.size(), 56U);
  EXPECT_STREQ(request.data.c_str(), "hello");
  EXPECT_EQ(request.conn.responder_resources, 2);
  EXPECT_EQ(request.conn.initiator_depth, 3);
  EXPECT_EQ(request.conn.retry_count, 5);
  EXPECT_EQ(request.conn.rnr_retry_count, 6);
  EXPECT_EQ(request.conn.flow_control, 1);
  EXPECT_EQ(request.conn.qp_num, client->qp->qp_num);
  EXPECT_EQ(rdma_get_dst_port(request.id), rdma_get_src_port(client));
  EXPECT_EQ(rdma_get_src_port(request.id), rdma_get_src_port(listener));

  make_qp(request.id);
  rdma_conn_param answering = parameters("welcome");
  answering.responder_resources = 2;
  answering.initiator_depth = 3;
  ASSERT_EQ(rdma_accept(request.id, &answering), 0);
  EXPECT_EQ(state_of(request.id->qp), IBV_QPS_RTS);
  EXPECT_EQ(state_of(client->qp), IBV_QPS_INIT);  // it moves when the program takes the event, not before
  const Seen established = clients.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(state_of(client->qp), IBV_QPS_RTS);
  EXPECT_EQ(established.data.size(), 196U);
  EXPECT_STREQ(established.data.c_str(), "welcome");
  EXPECT_EQ(established.conn.qp_num, request.id->qp->qp_num);
  const Seen passive = servers.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(passive.id, request.id);
  EXPECT_TRUE(passive.data.empty());
  discard(client);
  servers.expect(RDMA_CM_EVENT_DISCONNECTED);
  discard(request.id);
  discard(listener);
}

TEST(Connection, ends_in_order) {
  Pair pair;
  ASSERT_EQ(rdma_disconnect(pair.client), 0);
  EXPECT_EQ(state_of(pair.client->qp), IBV_QPS_ERR);
  EXPECT_EQ(pair.server_channel.expect(RDMA_CM_EVENT_DISCONNECTED).id, pair.server);
  EXPECT_EQ(state_of(pair.server->qp), IBV_QPS_RTS);  // its program decides when
  EXPECT_FALSE(pair.client_channel.is_readable());
  ASSERT_EQ(rdma_disconnect(pair.server), 0);
  EXPECT_EQ(pair.client_channel.expect(RDMA_CM_EVENT_DISCONNECTED).status, 0);
  EXPECT_EQ(rdma_disconnect(pair.server), 0);
  pair.client_channel.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  pair.server_channel.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST(Connection, ends_once_on_each_side_when_both_ask) {
  Pair pair;
  ASSERT_EQ(rdma_disconnect(pair.client), 0);
  ASSERT_EQ(rdma_disconnect(pair.server), 0);
  pair.client_channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  pair.server_channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  pair.client_channel.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  pair.server_channel.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

// The peer has what was sent, says so, and goes at once. Who hears of that may tear all down without a look at its
// queue, and its completions go too: they must have been fetched before.
TEST(Connection, tells_what_arrived_before_it_tells_of_the_end) {
  Pair pair;
  char word[16] = "the last word";
  ibv_mr* from = rdma_reg_msgs(pair.client, word, sizeof word);
  ibv_mr* to = rdma_reg_msgs(pair.server, word, sizeof word);
  ASSERT_EQ(rdma_post_recv(pair.server, nullptr, word, sizeof word, to), 0);
  ASSERT_EQ(rdma_post_send(pair.client, nullptr, word, sizeof word, from, IBV_SEND_SIGNALED), 0);
  ibv_wc done{};
  while (ibv_poll_cq(pair.server->recv_cq, 1, &done) == 0) {
    ASSERT_EQ(ibv_poll_cq(pair.client->recv_cq, 1, &done), 0);  // whoever polls is trusted to take in what comes
  }
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  ASSERT_EQ(rdma_disconnect(pair.server), 0);
  // On a busy machine a program that polls may be without a processor for as long.
  EXPECT_FALSE(pair.client_channel.is_readable(400));
  ASSERT_EQ(ibv_poll_cq(pair.client->send_cq, 1, &done), 1);
  EXPECT_STREQ(ibv_wc_status_str(done.status), ibv_wc_status_str(IBV_WC_SUCCESS));
  pair.client_channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_EQ(rdma_disconnect(pair.client), 0);
  pair.server_channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_dereg_mr(from), 0);
  EXPECT_EQ(rdma_dereg_mr(to), 0);
}

TEST(Connection, tells_of_the_end_though_nobody_reads_what_arrived) {
  Pair pair;
  char word[16] = "unread";
  ibv_mr* from = rdma_reg_msgs(pair.client, word, sizeof word);
  ibv_mr* to = rdma_reg_msgs(pair.server, word, sizeof word);
  ASSERT_EQ(rdma_post_recv(pair.server, nullptr, word, sizeof word, to), 0);
  ASSERT_EQ(rdma_post_send(pair.client, nullptr, word, sizeof word, from, IBV_SEND_SIGNALED), 0);
  ASSERT_EQ(rdma_disconnect(pair.client), 0);
  pair.server_channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_EQ(rdma_disconnect(pair.server), 0);
  pair.client_channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_dereg_mr(from), 0);
  EXPECT_EQ(rdma_dereg_mr(to), 0);
}

TEST(Connection, is_rejected_with_a_reason_and_data) {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  make_qp(client);
  rdma_conn_param asking = parameters();
  ASSERT_EQ(rdma_connect(client, &asking), 0);
  const Seen request = servers.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_EQ(rdma_reject(request.id, "nope", 4), 0);
  discard(request.id);
  const Seen rejected = clients.expect(RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected.status, 28);
  EXPECT_EQ(rejected.data.size(), 148U);
  EXPECT_STREQ(rejected.data.c_str(), "nope");
  errno = 0;
  EXPECT_EQ(rdma_connect(client, &asking), -1);  // a new identifier is needed
  EXPECT_EQ(errno, EINVAL);
  discard(client);
  discard(listener);
}

TEST(Connection, to_nobody_is_rejected) {
  Channel servers;
  Channel clients;
  rdma_cm_id* gone = new_id(servers);
  sockaddr_in at = address();
  ASSERT_EQ(rdma_bind_addr(gone, c(at)), 0);  // bound, but it does not listen
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(gone)));
  make_qp(client);
  rdma_conn_param asking = parameters();
  ASSERT_EQ(rdma_connect(client, &asking), 0);
  EXPECT_EQ(clients.expect(RDMA_CM_EVENT_REJECTED).status, 8);
  discard(client);
  discard(gone);
}

TEST(Connection, without_a_queue_pair_is_completed_by_the_program) {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  rdma_conn_param param = parameters();
  param.qp_num = 0x1234;
  ASSERT_EQ(rdma_connect(client, &param), 0);
  const Seen request = servers.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request.conn.qp_num, 0x1234U);
  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(rdma_init_qp_attr(request.id, &attributes, &mask), 0);
  EXPECT_EQ(attributes.dest_qp_num, 0x1234U);
  param.qp_num = 0x4321;
  ASSERT_EQ(rdma_accept(request.id, &param), 0);
  clients.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  attributes.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(rdma_init_qp_attr(client, &attributes, &mask), 0);
  EXPECT_EQ(attributes.dest_qp_num, 0x4321U);
  EXPECT_TRUE((mask & IBV_QP_AV) != 0 && (mask & IBV_QP_RQ_PSN) != 0);
  EXPECT_FALSE(servers.is_readable());
  ASSERT_EQ(rdma_establish(client), 0);
  servers.expect(RDMA_CM_EVENT_ESTABLISHED);
  discard(client);
  servers.expect(RDMA_CM_EVENT_DISCONNECTED);
  discard(request.id);
  discard(listener);
}

TEST(Connection, without_a_queue_pair_agrees_on_numbers_before_it_is_accepted) {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  rdma_conn_param param = parameters();
  param.qp_num = 0x1234;
  ASSERT_EQ(rdma_connect(client, &param), 0);
  rdma_cm_id* server = servers.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  ASSERT_NE(server, nullptr);
  const auto step = [](rdma_cm_id* id, ibv_qp_state state) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = state;
    EXPECT_EQ(rdma_init_qp_attr(id, &attributes, &mask), 0);
    return attributes;
  };
  const ibv_qp_attr server_receives = step(server, IBV_QPS_RTR);
  const ibv_qp_attr server_sends = step(server, IBV_QPS_RTS);
  EXPECT_EQ(server_receives.max_dest_rd_atomic, param.initiator_depth);
  EXPECT_EQ(server_sends.max_rd_atomic, param.responder_resources);
  param.qp_num = 0x4321;
  ASSERT_EQ(rdma_accept(server, &param), 0);
  clients.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(step(client, IBV_QPS_RTS).sq_psn, server_receives.rq_psn);
  EXPECT_EQ(step(client, IBV_QPS_RTR).rq_psn, server_sends.sq_psn);
  EXPECT_EQ(step(server, IBV_QPS_RTR).rq_psn, server_receives.rq_psn);
  ASSERT_EQ(rdma_establish(client), 0);
  servers.expect(RDMA_CM_EVENT_ESTABLISHED);
  discard(client);
  servers.expect(RDMA_CM_EVENT_DISCONNECTED);
  discard(server);
  discard(listener);
}

TEST(Connection, beyond_the_limits_is_refused_at_once) {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  make_qp(client);
  const std::string too_long(57, 'x');
  rdma_conn_param param = parameters(too_long);
  EXPECT_EQ(rdma_connect(client, &param), -1);
  EXPECT_EQ(errno, EINVAL);
  param = parameters();
  param.responder_resources = 200;
  EXPECT_EQ(rdma_connect(client, &param), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_connect(client, nullptr), 0);  // as much as the device can
  const Seen request = servers.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_GT(request.conn.responder_resources, 1);
  make_qp(request.id);
  EXPECT_EQ(rdma_accept(request.id, nullptr), 0);
  clients.expect(RDMA_CM_EVENT_ESTABLISHED);
  servers.expect(RDMA_CM_EVENT_ESTABLISHED);
  discard(client);
  servers.expect(RDMA_CM_EVENT_DISCONNECTED);
  discard(request.id);
  discard(listener);
}

TEST(Connection, of_datagrams_tells_where_to_send) {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers, RDMA_PS_UDP);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)), RDMA_PS_UDP);
  make_qp(client);
  EXPECT_EQ(state_of(client->qp), IBV_QPS_RTS);
  rdma_conn_param param = parameters("who");
  ASSERT_EQ(rdma_connect(client, &param), 0);
  const Seen request = servers.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request.data.size(), 180U);
  make_qp(request.id);
  ASSERT_EQ(rdma_accept(request.id, &param), 0);
  const Seen found = clients.expect(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(found.datagram.qp_num, request.id->qp->qp_num);
  EXPECT_EQ(found.datagram.qkey, 0x01234567U);
  EXPECT_EQ(found.datagram.ah_attr.is_global, 1);
  EXPECT_EQ(found.data.size(), 136U);
  EXPECT_FALSE(servers.is_readable());
  discard(client);
  discard(request.id);
  discard(listener);
}

TEST(Connection, a_full_backlog_drops_requests_and_later_takes_them) {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers, RDMA_PS_TCP, 1);
  std::vector<rdma_cm_id*> asking;
  for (int i = 0; i < 3; ++i) {
    asking.push_back(routed(clients, ntohs(rdma_get_src_port(listener))));
    make_qp(asking.back());
    rdma_conn_param param = parameters();
    ASSERT_EQ(rdma_connect(asking.back(), &param), 0);
  }
  std::vector<rdma_cm_id*> served;
  const auto serve = [&](rdma_cm_id* request) {
    ASSERT_NE(request, nullptr);
    served.push_back(request);
    make_qp(request);
    rdma_conn_param param = parameters();
    ASSERT_EQ(rdma_accept(request, &param), 0);
    clients.expect(RDMA_CM_EVENT_ESTABLISHED);  // who fetches it tells the server
  };
  EXPECT_FALSE(clients.is_readable(500));  // all have come: one waits to be fetched, the others were dropped, and ask again
  for (int n_established = 0; n_established < 3 && !HasFailure();) {
    const Seen seen = servers.next();
    if (seen.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      serve(seen.id);  // perhaps before the one before it is established: it has been fetched
    } else {
      ++n_established;
      EXPECT_STREQ(rdma_event_str(seen.type), rdma_event_str(RDMA_CM_EVENT_ESTABLISHED));
    }
  }
  for (rdma_cm_id* id : asking) {
    discard(id);
    servers.expect(RDMA_CM_EVENT_DISCONNECTED);
  }
  for (rdma_cm_id* id : served) {
    discard(id);
  }
  discard(listener);
}

}  // namespace
}  // namespace ringbolt::rdmacm_test
