/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scheduler's interface, one form for all kernels. The macros come from
 * Kbuild, which looks at the header.
 */
#ifndef MOCK_COMPAT_H
#define MOCK_COMPAT_H

#include <linux/mm.h>

#include <drm/gpu_scheduler.h>

#ifdef MOCK_STAT_NOMINAL
#define MOCK_STAT_FINE DRM_GPU_SCHED_STAT_NOMINAL
#else
#define MOCK_STAT_FINE DRM_GPU_SCHED_STAT_RESET
#endif

/*
 * A scheduler without time limit for @depth jobs at a time.
 * @sched must be zeroed: drm_sched_init() does nothing if it looks used.
 */
static inline int mock_sched_init(struct drm_gpu_scheduler *sched,
				  const struct drm_sched_backend_ops *ops,
				  unsigned int depth, const char *name,
				  struct device *dev)
{
#if defined(MOCK_INIT_ARGS)
	const struct drm_sched_init_args args = {
		.ops = ops,
#ifdef MOCK_INIT_ARGS_NUM_RQS
		.num_rqs = DRM_SCHED_PRIORITY_COUNT,
#endif
		.credit_limit = depth,
		.timeout = MAX_SCHEDULE_TIMEOUT,
		.name = name,
		.dev = dev,
	};

	return drm_sched_init(sched, &args);
#elif defined(MOCK_INIT_11)
	return drm_sched_init(sched, ops, NULL, DRM_SCHED_PRIORITY_COUNT, depth,
			      0, MAX_SCHEDULE_TIMEOUT, NULL, NULL, name, dev);
#else
	return drm_sched_init(sched, ops, depth, 0, MAX_SCHEDULE_TIMEOUT, NULL,
			      NULL, name, dev);
#endif
}

/*
 * A job of one credit. Kernels whose jobs know no client ignore @client_id.
 */
static inline int mock_job_init(struct drm_sched_job *job,
				struct drm_sched_entity *entity, void *owner,
				u64 client_id)
{
#if defined(MOCK_JOB_CLIENT_ID)
	return drm_sched_job_init(job, entity, 1, owner, client_id);
#elif defined(MOCK_JOB_CREDITS)
	return drm_sched_job_init(job, entity, 1, owner);
#else
	return drm_sched_job_init(job, entity, owner);
#endif
}

static inline void mock_vm_flags_set(struct vm_area_struct *vma,
				     unsigned long flags)
{
#ifdef MOCK_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

#endif /* MOCK_COMPAT_H */
