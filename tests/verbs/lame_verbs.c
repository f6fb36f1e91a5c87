// Fourteen of the sixteen functions that every verbs library has: no ibv_modify_qp, no ibv_dereg_mr. None is ever called.
#define FUNCTION(name)                                                  \
  __attribute__((visibility("default"))) void name(void); \
  void name(void) {}

FUNCTION(ibv_get_device_list)
FUNCTION(ibv_free_device_list)
FUNCTION(ibv_get_device_name)
FUNCTION(ibv_open_device)
FUNCTION(ibv_close_device)
FUNCTION(ibv_alloc_pd)
FUNCTION(ibv_dealloc_pd)
FUNCTION(ibv_create_cq)
FUNCTION(ibv_destroy_cq)
FUNCTION(ibv_create_qp)
FUNCTION(ibv_destroy_qp)
FUNCTION(ibv_query_port)
FUNCTION(ibv_query_gid)
FUNCTION(ibv_reg_mr)
