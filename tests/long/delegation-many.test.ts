/** 5,000 open delegations survive kill -9 (issue 4, §6): all are restored with their clocks, and all end. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createDaemon, type Daemon } from '../fakes/daemon.ts'

const WORKERS = Array.from({ length: 50 }, (_, number) => `Worker${number}`)
/** For each worker: 20 at work, 20 that asked their parent, 20 that asked a person, 20 not accepted, 20 about to expire. */
const EACH = 20
const CONFIG = `
agents:
  Master: {}
${WORKERS.map((name) => `  ${name}: { parent: Master }`).join('\n')}
tasks: { retries: 0 }
limits: { rate: off }
`

type Fields = Record<string, unknown>
interface Receipt {
  status: string
  details: { task_id: string; messages: { id: string; task_id: string }[] }
}

function openHall(daemon: Daemon, tokens: ReadonlyMap<string, string>) {
  /** Sends many commands as one agent. */
  async function say(speaker: string, commands: readonly Fields[]): Promise<Receipt[]> {
    const receipts: Receipt[] = []
    for (let at = 0; at < commands.length; at += 1000) {
      const answer = await daemon.call(
        'POST',
        '/api/v1/commands',
        tokens.get(speaker)!,
        commands.slice(at, at + 1000),
      )
      receipts.push(...(answer.body as unknown as Receipt[]))
    }
    for (const receipt of receipts) expect(receipt).toMatchObject({ status: 'ok' })
    return receipts
  }
  return {
    say,
    async delegate(seconds: number): Promise<Map<string, string[]>> {
      const commands = WORKERS.flatMap((to) =>
        Array.from({ length: EACH }, (_, n) => ({
          type: 'delegate',
          to,
          task: `Part ${n} of something`,
          timeout_seconds: seconds,
        })),
      )
      const receipts = await say('Master', commands)
      return Map.groupBy(
        receipts.map(({ details }) => details.task_id),
        (_, index) => WORKERS[Math.floor(index / EACH)]!,
      )
    },
    /** Workers accept all waiting tasks and begin to work. */
    async takeAll() {
      for (const worker of WORKERS) {
        const [taken] = await say(worker, [{ type: 'mailbox_check' }])
        await say(worker, [{ type: 'acknowledge', ids: taken!.details.messages.map(({ id }) => id) }])
      }
    },
    async each(tasks: ReadonlyMap<string, readonly string[]>, command: (task: string) => Fields) {
      for (const [worker, ids] of tasks) await say(worker, ids.map(command))
    },
  }
}

interface Census {
  tasks: Record<string, number>
  /** Counts open tasks that need a clock and have none. */
  clockless: number
  timers: number
  requests: number
}

/** Reads the database file directly, with or without a running service. */
function census(daemon: Daemon): Census {
  const database = new DatabaseSync(join(daemon.folder, '.orc', 'orc.db'), { readOnly: true })
  const count = (sql: string) => Number((database.prepare(sql).get() as { count: number }).count)
  const states = database.prepare('SELECT state, COUNT(*) AS count FROM tasks GROUP BY state').all()
  const found = {
    tasks: Object.fromEntries(states.map((row) => [row.state, Number(row.count)])),
    clockless: count(
      `SELECT COUNT(*) AS count FROM tasks WHERE ended_at IS NULL AND state <> 'waiting_user'
         AND due_at IS NULL`,
    ),
    timers: count(
      `SELECT (SELECT COUNT(*) FROM timers) + (SELECT COUNT(*) FROM tasks WHERE due_at IS NOT NULL) AS count`,
    ),
    requests: count(`SELECT COUNT(*) AS count FROM human_requests WHERE state = 'open'`),
  }
  database.close()
  return found
}

function residentMebibytes(daemon: Daemon): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid()}/status`, 'utf8'))![1]) / 1024
}

it('keeps 5,000 open delegations and their timers across kill -9, and all of them end', async () => {
  const daemon = await createDaemon(CONFIG)
  onTestFinished(() => daemon.close())
  await daemon.start()
  const before = residentMebibytes(daemon)
  const tokens = new Map([['operator', daemon.operatorToken()]])
  for (const name of ['Master', ...WORKERS]) tokens.set(name, await daemon.token(name))
  const hall = openHall(daemon, tokens)

  const atWork = await hall.delegate(3600)
  const asking = await hall.delegate(3600)
  const askingPeople = await hall.delegate(3600)
  await hall.takeAll()
  await hall.each(asking, (task) => ({ type: 'query', question: 'How?', in_response_to: task }))
  await hall.each(askingPeople, (task) => ({
    type: 'request_user_input',
    question: 'Where?',
    in_response_to: task,
  }))
  const inHaste = await hall.delegate(30)
  await hall.takeAll()
  const notTaken = await hall.delegate(3600)

  const beforeKill = residentMebibytes(daemon)
  await daemon.kill()
  const left = census(daemon)
  expect(left).toMatchObject({
    tasks: { executing: 2000, waiting_parent: 1000, waiting_user: 1000, pending: 1000 },
    clockless: 0,
    requests: 1000,
  })
  // One for each task, or for the person it waits for.
  expect(left.timers).toBeGreaterThanOrEqual(5000)
  const startedAt = performance.now()
  await daemon.start()
  const milliseconds = performance.now() - startedAt
  console.log(
    `5,000 open delegations: started in ${milliseconds.toFixed(0)} ms; resident ${before.toFixed(0)} MiB without any, ` +
      `${beforeKill.toFixed(0)} before the kill, ${residentMebibytes(daemon).toFixed(0)} after the start`,
  )
  expect(residentMebibytes(daemon) - before).toBeLessThan(100)

  // Tasks with a running clock fail by it; the others continue.
  await hall.each(atWork, (task) => ({
    type: 'report',
    status: 'completed',
    result: 'Done',
    in_response_to: task,
  }))
  await hall.say(
    'Master',
    [...asking.values()].flat().map((task) => ({ type: 'answer', answer: 'So.', in_response_to: task })),
  )
  await hall.say(
    'operator',
    [...askingPeople.values()]
      .flat()
      .map((task) => ({ type: 'answer', answer: 'There.', in_response_to: task })),
  )
  for (const tasks of [asking, askingPeople]) {
    await hall.each(tasks, (task) => ({
      type: 'report',
      status: 'completed',
      result: 'Done',
      in_response_to: task,
    }))
  }
  // Tasks about to expire fail by their deadline, unaccepted ones by the acknowledgement timeout.
  await vi.waitFor(() => expect(census(daemon).tasks).toEqual({ completed: 3000, failed: 2000 }), {
    timeout: 120_000,
    interval: 500,
  })
  expect([inHaste.size, notTaken.size]).toEqual([WORKERS.length, WORKERS.length])
  // 2,000 failures don't make 2,000 requests to people, but one for each worker and cause.
  expect(census(daemon)).toMatchObject({ clockless: 0, requests: 2 * WORKERS.length })
  const { body } = await daemon.call('GET', '/api/v1/audit/verify', daemon.operatorToken())
  expect(body).toMatchObject({ ok: true })
  console.log(`in the end ${residentMebibytes(daemon).toFixed(0)} MiB`)
})
