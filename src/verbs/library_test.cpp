#include "verbs/library.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "base/error.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::verbs {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

/// What opening says, or nothing.
std::string refusal(std::string_view choice) {
  try {
    Library::open(choice);
    return {};
  } catch (const base::Error& error) {
    return error.what();
  }
}

TEST(VerbsLibrary, own_one_lies_where_this_is_installed) {
  const test::RuntimeFolder folder;
  const Library library = Library::open("soft");
  EXPECT_THAT(library.name(), EndsWith("/lib/ringbolt/libibverbs.so.1"));
  EXPECT_NE(library.calls().alloc_buf, nullptr);
  EXPECT_NE(library.calls().query_gid_ex, nullptr);
  EXPECT_TRUE(has_active_port(library));
}

TEST(VerbsLibrary, is_opened_by_path_too) {
  const std::string path = Library::open("soft").name();
  EXPECT_EQ(Library::open(path).name(), path);
}

TEST(VerbsLibrary, auto_takes_one_with_an_active_port) {
  const test::RuntimeFolder folder;
  EXPECT_TRUE(has_active_port(Library::open("auto")));
}

TEST(VerbsLibrary, refusal_names_every_missing_function) {
  EXPECT_THAT(refusal(LAME_LIBRARY), AllOf(HasSubstr(LAME_LIBRARY), HasSubstr("ibv_modify_qp, ibv_dereg_mr;")));
}

TEST(VerbsLibrary, refusal_names_the_file) {
  EXPECT_THAT(refusal("/nowhere/libibverbs.so.1"), HasSubstr("/nowhere/libibverbs.so.1"));
}

TEST(VerbsLibrary, word_without_a_slash_is_no_path) {
  EXPECT_THAT(refusal("ours"), AllOf(HasSubstr("\"ours\""), HasSubstr("auto, system, soft, or a path")));
  EXPECT_THAT(refusal(""), HasSubstr("\"\""));
}

TEST(VerbsLibrary, without_devices_has_no_active_port) {
  Calls calls = Library::open("soft").calls();
  calls.get_device_list = [](int* count) -> ibv_device** {
    *count = 0;
    errno = ENOSYS;
    return nullptr;
  };
  EXPECT_FALSE(has_active_port(Library("none", calls)));
}

TEST(VerbsLibrary, port_that_is_down_is_not_active) {
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  calls.query_port = [](ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
    reinterpret_cast<ibv_port_attr*>(attributes)->state = IBV_PORT_DOWN;
    return 0;
  };
  EXPECT_FALSE(has_active_port(Library("down", calls)));
  calls.query_device = nullptr;  // as Apple's: then there is port 1 alone
  EXPECT_FALSE(has_active_port(Library("down", calls)));
}

TEST(VerbsLibrary, device_with_an_active_port_is_not_asked_what_it_may_not_answer) {
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  calls.query_device = [](ibv_context*, ibv_device_attr*) {
    ADD_FAILURE() << "a driver that has fallen asleep would hang here";
    return EIO;
  };
  EXPECT_TRUE(has_active_port(Library("asleep", calls)));
}

TEST(VerbsReturn, is_zero_or_a_positive_errno) {
  EXPECT_EQ(error_of(0, EINVAL), 0);
  EXPECT_EQ(error_of(EBUSY, 0), EBUSY);
  EXPECT_EQ(error_of(-ENOMEM, EINVAL), ENOMEM);
  EXPECT_EQ(error_of(-1, EINVAL), EINVAL);
  EXPECT_EQ(error_of(-1, 0), 1);
}

/// As providers answer that return -1 and say why in errno.
int refuse_with(int error) {
  errno = error;
  return -1;
}

TEST(VerbsReturn, errno_is_read_after_the_call) {
  const test::RuntimeFolder folder;
  Calls calls = Library::open("soft").calls();
  calls.modify_qp = [](ibv_qp*, ibv_qp_attr*, int) { return refuse_with(ETIMEDOUT); };
  calls.query_device = [](ibv_context*, ibv_device_attr*) { return refuse_with(ETIMEDOUT); };
  calls.query_gid = [](ibv_context*, uint8_t, int, ibv_gid*) { return refuse_with(ETIMEDOUT); };
  const Library library("refusing", calls);
  const Context context(library, "");
  const ProtectionDomain pd(context);
  const CompletionQueue cq(context, 8);
  EXPECT_EQ(context.query_device().error().value, ETIMEDOUT);
  EXPECT_EQ(context.query_gid(1, 0).error().value, ETIMEDOUT);
  context.get()->ops.req_notify_cq = [](ibv_cq*, int) { return refuse_with(ETIMEDOUT); };
  EXPECT_EQ(cq.arm(), ETIMEDOUT);
  UnconnectedQueuePair qp(pd, {.type = IBV_QPT_UC, .send_cq = &cq, .receive_cq = &cq});
  try {
    qp.to_init({});
    ADD_FAILURE() << "it has refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.errno_value(), ETIMEDOUT);
  }
}

}  // namespace
}  // namespace ringbolt::verbs
