// SPDX-License-Identifier: GPL-2.0
/*
 * The rings: schedulers of the kernel, and hardware that only sleeps.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "mock.h"

/* How long the exit waits for jobs to be freed, which take a few ms. */
#define MOCK_DRAIN (10 * HZ)

struct mock_ring *mock_rings[MOCK_MAX_RINGS];
unsigned int mock_ring_count;

/* The hardware of all rings; the system's own queues must not be flushed. */
static struct workqueue_struct *mock_wq;
static DECLARE_WAIT_QUEUE_HEAD(mock_idle);

/*
 * A fence that the hardware signals; made when the scheduler runs the job.
 * It may outlive the job, so it holds all that the hardware must know.
 */
struct mock_fence {
	struct dma_fence base;
	struct list_head link;
	struct mock_ring *ring;
	unsigned int duration_us;
	int error;
};

struct mock_job {
	struct drm_sched_job base;
	struct mock_ring *ring;
	unsigned int duration_us;
	int error;
};

static const char *mock_fence_driver(struct dma_fence *fence)
{
	return "drm-sched-mock";
}

static const char *mock_fence_timeline(struct dma_fence *fence)
{
	return container_of(fence, struct mock_fence, base)->ring->name;
}

/* No release: the default frees by RCU, without code of this module. */
static const struct dma_fence_ops mock_fence_ops = {
	.get_driver_name = mock_fence_driver,
	.get_timeline_name = mock_fence_timeline,
};

static struct mock_fence *mock_next(struct mock_ring *ring)
{
	struct mock_fence *fence;
	unsigned long flags;

	spin_lock_irqsave(&ring->lock, flags);
	fence = list_first_entry_or_null(&ring->pending, struct mock_fence,
					 link);
	if (fence)
		list_del(&fence->link);
	spin_unlock_irqrestore(&ring->lock, flags);
	return fence;
}

/* The hardware: one job after the other. */
static void mock_work(struct work_struct *work)
{
	struct mock_ring *ring = container_of(work, struct mock_ring, work);
	struct mock_fence *fence;

	while ((fence = mock_next(ring))) {
		if (fence->duration_us)
			fsleep(fence->duration_us);
		if (fence->error) {
			dma_fence_set_error(&fence->base, -fence->error);
			atomic64_inc(&ring->failed);
		}
		/* Counted first: who sees the fence sees the count. */
		atomic64_inc(&ring->done);
		dma_fence_signal(&fence->base);
		dma_fence_put(&fence->base);
	}
}

/* The scheduler says: this job's turn. It owns one reference to the fence. */
static struct dma_fence *mock_run_job(struct drm_sched_job *base)
{
	struct mock_job *job = container_of(base, struct mock_job, base);
	struct mock_ring *ring = job->ring;
	struct mock_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	unsigned long flags;

	if (!fence)
		return ERR_PTR(-ENOMEM);
	fence->ring = ring;
	fence->duration_us = job->duration_us;
	fence->error = job->error;
	INIT_LIST_HEAD(&fence->link);
	dma_fence_init(&fence->base, &mock_fence_ops, &ring->lock,
		       ring->context, ++ring->seqno);
	atomic64_inc(&ring->run);

	dma_fence_get(&fence->base);
	spin_lock_irqsave(&ring->lock, flags);
	list_add_tail(&fence->link, &ring->pending);
	spin_unlock_irqrestore(&ring->lock, flags);
	queue_work(mock_wq, &ring->work);
	return &fence->base;
}

/* Never called: the schedulers have no time limit. */
static enum drm_gpu_sched_stat mock_timedout_job(struct drm_sched_job *job)
{
	return MOCK_STAT_FINE;
}

static void mock_free_job(struct drm_sched_job *base)
{
	struct mock_job *job = container_of(base, struct mock_job, base);
	struct mock_ring *ring = job->ring;

	drm_sched_job_cleanup(base);
	kfree(job);
	atomic64_inc(&ring->freed);
	wake_up_all(&mock_idle);
}

static const struct drm_sched_backend_ops mock_sched_ops = {
	.run_job = mock_run_job,
	.timedout_job = mock_timedout_job,
	.free_job = mock_free_job,
};

static struct mock_job *mock_job_alloc(const struct mock_order *order,
				       struct drm_sched_entity *entity,
				       struct dma_fence *before)
{
	struct mock_job *job = kzalloc(sizeof(*job), GFP_KERNEL);
	int err;

	if (!job)
		return ERR_PTR(-ENOMEM);
	job->ring = order->ring;
	job->duration_us = order->duration_us;
	job->error = order->error;
	err = mock_job_init(&job->base, entity, entity, order->client_id);
	if (err)
		goto free;
	if (before) {
		/* Takes the reference, also when it fails. */
		err = drm_sched_job_add_dependency(&job->base,
						   dma_fence_get(before));
		if (err)
			goto cleanup;
	}
	return job;

cleanup:
	drm_sched_job_cleanup(&job->base);
free:
	kfree(job);
	return ERR_PTR(err);
}

/*
 * Pushes the jobs of an order, in the context of the caller, which is what
 * trace events show as the submitter. @last is the caller's last job before
 * and after. Returns the number of jobs pushed, or an error if none was.
 */
int mock_push(struct mock_order *order, struct drm_sched_entity *entity,
	      struct dma_fence **last)
{
	unsigned int pushed;

	for (pushed = 0; pushed < order->count; pushed++) {
		struct dma_fence *before = order->dependent ? *last : NULL;
		struct mock_job *job;

		if (fatal_signal_pending(current))
			return pushed ? pushed : -EINTR;
		job = mock_job_alloc(order, entity, before);
		if (IS_ERR(job))
			return pushed ? pushed : PTR_ERR(job);
		drm_sched_job_arm(&job->base);
		dma_fence_put(*last);
		*last = dma_fence_get(&job->base.s_fence->finished);
		atomic64_inc(&order->ring->submitted);
		drm_sched_entity_push_job(&job->base);
		cond_resched();
	}
	return pushed;
}

static int mock_ring_add(const char *name, unsigned int depth,
			 struct device *dev)
{
	struct mock_ring *ring;
	int err;

	if (mock_ring_count == MOCK_MAX_RINGS)
		return -E2BIG;
	/* A name goes into JSON as it is. */
	if (!*name || strlen(name) >= MOCK_NAME_SIZE ||
	    strpbrk(name, "\"\\ =\n"))
		return -EINVAL;
	ring = kzalloc(sizeof(*ring), GFP_KERNEL);
	if (!ring)
		return -ENOMEM;
	strscpy(ring->name, name, sizeof(ring->name));
	spin_lock_init(&ring->lock);
	INIT_LIST_HEAD(&ring->pending);
	INIT_WORK(&ring->work, mock_work);
	ring->context = dma_fence_context_alloc(1);
	err = mock_sched_init(&ring->sched, &mock_sched_ops, depth, ring->name,
			      dev);
	if (err) {
		kfree(ring);
		return err;
	}
	mock_rings[mock_ring_count++] = ring;
	return 0;
}

static bool mock_ring_idle(struct mock_ring *ring)
{
	return atomic64_read(&ring->freed) == atomic64_read(&ring->submitted);
}

/* No file is open any more: nothing is pushed, and what was, ends by itself. */
void mock_rings_fini(void)
{
	while (mock_ring_count) {
		struct mock_ring *ring = mock_rings[--mock_ring_count];

		/* Before 6.16, drm_sched_fini() leaks jobs that are not freed. */
		if (!wait_event_timeout(mock_idle, mock_ring_idle(ring),
					MOCK_DRAIN))
			pr_err("ring %s: %lld of %lld jobs freed\n", ring->name,
			       atomic64_read(&ring->freed),
			       atomic64_read(&ring->submitted));
		flush_work(&ring->work);
		drm_sched_fini(&ring->sched);
		/* Fences name their ring until their grace period is over. */
		synchronize_rcu();
		kfree(ring);
	}
	if (mock_wq)
		destroy_workqueue(mock_wq);
	mock_wq = NULL;
	rcu_barrier();
}

/* Makes a ring for each of the comma-separated names. */
int mock_rings_init(const char *names, unsigned int depth, struct device *dev)
{
	char *copy, *rest, *name;
	int err = 0;

	mock_wq = alloc_workqueue("drm-sched-mock", WQ_UNBOUND, 0);
	copy = kstrdup(names, GFP_KERNEL);
	if (!mock_wq || !copy)
		err = -ENOMEM;
	rest = copy;
	while (!err && (name = strsep(&rest, ",")))
		err = mock_ring_add(name, depth, dev);
	kfree(copy);
	if (err)
		mock_rings_fini();
	return err;
}
