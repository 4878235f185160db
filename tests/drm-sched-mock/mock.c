// SPDX-License-Identifier: GPL-2.0
/*
 * drm-sched-mock: real DRM GPU schedulers with made-up hardware, for tests of
 * tools that read the scheduler's trace events. See README.md.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "mock.h"

#define MOCK_LINE_SIZE 256
#define MOCK_REPORT_SIZE 4096
#define MOCK_MAX_JOBS 10000000
#define MOCK_MAX_US 10000000

static char *rings = "gfx_0.0.0,comp_1.0.0,comp_1.1.0,sdma0";
module_param(rings, charp, 0444);
MODULE_PARM_DESC(rings, "names of the rings, comma-separated (1 to 16)");

static unsigned int depth = 4;
module_param(depth, uint, 0444);
MODULE_PARM_DESC(depth, "jobs that a ring's hardware holds at a time");

/* The schedulers' device, without which newer kernels' events crash. */
static struct platform_device *mock_device;

/*
 * struct mock_client - an open file, as a DRM file is to a real driver
 * @lock: guards everything in here
 * @entities: its queue for each ring
 * @used: which of @entities are initialised
 * @last: finished fence of its last job
 */
struct mock_client {
	struct mutex lock;
	struct drm_sched_entity entities[MOCK_MAX_RINGS];
	bool used[MOCK_MAX_RINGS];
	struct dma_fence *last;
};

static int mock_open(struct inode *inode, struct file *file)
{
	struct mock_client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return -ENOMEM;
	mutex_init(&client->lock);
	file->private_data = client;
	return 0;
}

/* Waits until the scheduler has taken all jobs; kills them if the process was. */
static int mock_release(struct inode *inode, struct file *file)
{
	struct mock_client *client = file->private_data;
	unsigned int i;

	for (i = 0; i < mock_ring_count; i++)
		if (client->used[i])
			drm_sched_entity_destroy(&client->entities[i]);
	dma_fence_put(client->last);
	kfree(client);
	return 0;
}

static struct mock_ring *mock_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < mock_ring_count; i++)
		if (!strcmp(mock_rings[i]->name, name))
			return mock_rings[i];
	return NULL;
}

/* Reads one KEY=VALUE of a command into @order. */
static int mock_parse_word(char *word, struct mock_order *order)
{
	char *value = strchr(word, '=');

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(word, "ring")) {
		order->ring = mock_find(value);
		return order->ring ? 0 : -ENODEV;
	}
	if (!strcmp(word, "count"))
		return kstrtouint(value, 0, &order->count);
	if (!strcmp(word, "us"))
		return kstrtouint(value, 0, &order->duration_us);
	if (!strcmp(word, "client"))
		return kstrtou64(value, 0, &order->client_id);
	if (!strcmp(word, "error"))
		return kstrtoint(value, 0, &order->error);
	if (!strcmp(word, "dep"))
		return kstrtobool(value, &order->dependent);
	if (!strcmp(word, "wait"))
		return kstrtobool(value, &order->wait);
	return -EINVAL;
}

static int mock_parse(char *line, struct mock_order *order)
{
	char *word;
	int err;

	while ((word = strsep(&line, " \n"))) {
		if (!*word)
			continue;
		err = mock_parse_word(word, order);
		if (err)
			return err;
	}
	if (!order->ring || !order->count || order->count > MOCK_MAX_JOBS ||
	    order->duration_us > MOCK_MAX_US || order->error < 0 ||
	    order->error > MAX_ERRNO)
		return -EINVAL;
	return 0;
}

static int mock_carry_out(struct mock_client *client, struct mock_order *order)
{
	struct dma_fence *last = NULL;
	unsigned int i;
	int pushed = 0;

	for (i = 0; mock_rings[i] != order->ring; i++)
		;
	mutex_lock(&client->lock);
	if (!client->used[i]) {
		struct drm_gpu_scheduler *sched = &order->ring->sched;

		pushed = drm_sched_entity_init(&client->entities[i],
					       DRM_SCHED_PRIORITY_NORMAL,
					       &sched, 1, NULL);
		client->used[i] = !pushed;
	}
	if (!pushed)
		pushed = mock_push(order, &client->entities[i], &client->last);
	if (pushed > 0 && order->wait)
		last = dma_fence_get(client->last);
	mutex_unlock(&client->lock);
	if (last) {
		long err = dma_fence_wait(last, true);

		dma_fence_put(last);
		if (err)
			return -EINTR;
	}
	return pushed < 0 ? pushed : 0;
}

/* One command: see README.md. Fewer jobs than asked for only if killed or out of memory. */
static ssize_t mock_write(struct file *file, const char __user *from,
			  size_t size, loff_t *offset)
{
	struct mock_order order = { .count = 1 };
	char line[MOCK_LINE_SIZE];
	int err;

	if (size >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, size))
		return -EFAULT;
	line[size] = '\0';
	err = mock_parse(line, &order);
	if (!err)
		err = mock_carry_out(file->private_data, &order);
	return err ? err : size;
}

static int mock_report(char *to, int size)
{
	unsigned int i;
	int used = scnprintf(to, size, "{\"rings\":[");

	for (i = 0; i < mock_ring_count; i++) {
		struct mock_ring *ring = mock_rings[i];

		used += scnprintf(to + used, size - used,
				  "%s{\"name\":\"%s\",\"submitted\":%lld,\"run\":%lld,\"done\":%lld,\"failed\":%lld,\"freed\":%lld}",
				  i ? "," : "", ring->name,
				  atomic64_read(&ring->submitted),
				  atomic64_read(&ring->run),
				  atomic64_read(&ring->done),
				  atomic64_read(&ring->failed),
				  atomic64_read(&ring->freed));
	}
	return used + scnprintf(to + used, size - used, "]}\n");
}

/* The counts of all rings since the module was loaded, as JSON. */
static ssize_t mock_read(struct file *file, char __user *to, size_t size,
			 loff_t *offset)
{
	char *report = kmalloc(MOCK_REPORT_SIZE, GFP_KERNEL);
	ssize_t read;

	if (!report)
		return -ENOMEM;
	read = simple_read_from_buffer(to, size, offset, report,
				       mock_report(report, MOCK_REPORT_SIZE));
	kfree(report);
	return read;
}

static const struct file_operations mock_fops = {
	.owner = THIS_MODULE,
	.open = mock_open,
	.release = mock_release,
	.read = mock_read,
	.write = mock_write,
	.llseek = default_llseek,
};

static struct miscdevice mock_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "drm-sched-mock",
	.fops = &mock_fops,
	.mode = 0666,
};

static int __init mock_init(void)
{
	int err;

	if (!depth)
		return -EINVAL;
	mock_device = platform_device_register_simple("drm-sched-mock",
						      PLATFORM_DEVID_NONE,
						      NULL, 0);
	if (IS_ERR(mock_device))
		return PTR_ERR(mock_device);
	err = mock_rings_init(rings, depth, &mock_device->dev);
	if (err)
		goto unregister;
	err = misc_register(&mock_misc);
	if (err)
		goto fini;
	mock_memory_init();
	return 0;

fini:
	mock_rings_fini();
unregister:
	platform_device_unregister(mock_device);
	return err;
}

static void __exit mock_exit(void)
{
	mock_memory_fini();
	misc_deregister(&mock_misc);
	mock_rings_fini();
	platform_device_unregister(mock_device);
}

module_init(mock_init);
module_exit(mock_exit);
MODULE_DESCRIPTION("DRM GPU schedulers with made-up hardware");
MODULE_LICENSE("GPL");
