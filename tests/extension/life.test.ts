import { describe, expect, it, vi } from "vitest";
import { backOff } from "../../extension/src/backoff";
import { Queue } from "../../extension/src/queue";
import { within } from "../../extension/src/timeout";

describe("the queue", () => {
  it("runs one job after another, in order", async () => {
    const queue = new Queue();
    const told: string[] = [];
    const job = (name: string, milliseconds: number) =>
      queue.run(async () => {
        told.push(`${name} starts`);
        await new Promise((resolve) => setTimeout(resolve, milliseconds));
        told.push(`${name} ends`);
      });
    await Promise.all([job("stop", 20), job("start", 0)]);
    expect(told).toEqual(["stop starts", "stop ends", "start starts", "start ends"]);
  });

  it("goes on after a job that fails, and tells its caller", async () => {
    const queue = new Queue();
    const failing = queue.run(async () => {
      throw new Error("did not start");
    });
    await expect(failing).rejects.toThrow("did not start");
    await expect(queue.run(async () => 7)).resolves.toBe(7);
  });
});

describe("waiting", () => {
  it("ends with the error of being late", async () => {
    const never = new Promise<number>(() => undefined);
    await expect(within(10, never, () => new Error("no answer"))).rejects.toThrow("no answer");
  });

  it("hands on an answer in time, and an error as it is", async () => {
    const late = vi.fn(() => new Error("no answer"));
    await expect(within(1000, Promise.resolve(3), late)).resolves.toBe(3);
    await expect(within(1000, Promise.reject(new Error("refused")), late)).rejects.toThrow("refused");
    expect(late).not.toHaveBeenCalled();
  });
});

describe("a server that crashes", () => {
  it("is started again later each time, and not for ever", () => {
    expect(backOff([0])).toBe(0);
    expect(backOff([0, 1_000])).toBe(1_000);
    expect(backOff([0, 1_000, 3_000])).toBe(4_000);
    expect(backOff([0, 1_000, 3_000, 8_000])).toBe(15_000);
    expect(backOff([0, 1_000, 3_000, 8_000, 24_000])).toBeUndefined();
  });

  it("is forgiven crashes of long ago", () => {
    expect(backOff([0, 1_000, 3_000, 8_000, 600_000])).toBe(0);
  });
});
