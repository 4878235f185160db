/* Stands in for rocm_smi, which reads more of sysfs than the simulator has: rocblas-bench only looks up its GPU. */
#include <stdint.h>

int rsmi_init(uint64_t flags) { return 0; }
int rsmi_num_monitor_devices(uint32_t *count) { *count = 1; return 0; }
/* The first GPU of the simulator, as domain, bus, device and function. */
int rsmi_dev_pci_id_get(uint32_t device, uint64_t *id) { *id = 0x300; return 0; }
/* RSMI_STATUS_NOT_SUPPORTED */
int rsmi_dev_gpu_clk_freq_get(void) { return 2; }
int rsmi_dev_gpu_metrics_info_get(void) { return 2; }
int rsmi_dev_metrics_xcd_counter_get(void) { return 2; }
int rsmi_status_string(int status, const char **text) { *text = "stand-in"; return 0; }
