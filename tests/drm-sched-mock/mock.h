/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings of made-up hardware behind the kernel's own DRM GPU scheduler.
 */
#ifndef MOCK_H
#define MOCK_H

#include <linux/atomic.h>
#include <linux/dma-fence.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "compat.h"

#define MOCK_MAX_RINGS 16
/* As long as a name can be in amdgpu, NUL included. */
#define MOCK_NAME_SIZE 16

/*
 * struct mock_ring - one scheduler and the hardware that it feeds
 * @lock: guards @pending and is the lock of the hardware's fences
 * @pending: jobs that the hardware has taken, in order
 * @work: the hardware: carries out what is in @pending, one after the other
 * @context: fence context of the hardware's fences
 * @seqno: last sequence number in that context
 * @submitted: jobs that were pushed
 * @run: jobs that the scheduler handed to the hardware
 * @done: jobs that the hardware carried out
 * @failed: those of @done that ended with an error
 * @freed: jobs whose memory the scheduler gave back, run or not
 */
struct mock_ring {
	struct drm_gpu_scheduler sched;
	char name[MOCK_NAME_SIZE];
	spinlock_t lock;
	struct list_head pending;
	struct work_struct work;
	u64 context;
	u64 seqno;
	atomic64_t submitted;
	atomic64_t run;
	atomic64_t done;
	atomic64_t failed;
	atomic64_t freed;
};

/*
 * struct mock_order - what a process asks for
 * @ring: where the jobs go
 * @count: number of jobs, all alike
 * @duration_us: how long the hardware takes for one
 * @client_id: goes into the events of kernels whose jobs know a client
 * @error: positive errno that each job ends with, or 0
 * @dependent: whether each job waits for the one before, of whatever ring
 * @wait: whether the call returns only after the last job
 */
struct mock_order {
	struct mock_ring *ring;
	unsigned int count;
	unsigned int duration_us;
	u64 client_id;
	int error;
	bool dependent;
	bool wait;
};

extern struct mock_ring *mock_rings[MOCK_MAX_RINGS];
extern unsigned int mock_ring_count;

int mock_rings_init(const char *names, unsigned int depth, struct device *dev);
void mock_rings_fini(void);
void mock_memory_init(void);
void mock_memory_fini(void);
int mock_push(struct mock_order *order, struct drm_sched_entity *entity,
	      struct dma_fence **last);

#endif /* MOCK_H */
