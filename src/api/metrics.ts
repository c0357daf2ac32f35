import { performance } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ErrorCode } from '../base/errors.ts'
import type { Engine } from '../engine.ts'
import type { GithubTeamState } from '../github/api.ts'
import { countOpen } from '../messages/delivery-states.ts'
import { countOpenRequests } from '../people/people.ts'
import type { Receipt } from '../protocol/receipt.ts'
import { CALL_KINDS, type OpenCalls } from './open-calls.ts'

/** Prometheus metrics. Each service has its own registry, because an embedding program may run several services. */
export interface Metrics {
  render(): Promise<{ type: string; text: string }>
  close(): void
}

/** The label for all unknown command types: callers must not be able to add labels without limit. */
const UNKNOWN = 'unknown'
const SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5]

interface CommandTally {
  outcomes: Record<Receipt['status'], number>
  latency: { observe(seconds: number): void }
}

/** The longest delay a timer accepts. */
const NEVER_MS = 2 ** 31 - 1
const SAMPLED = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99']

/** Process metrics. Event loop delay is not sampled, which would wake the process a hundred times a second; utilization is measured between scrapes instead. */
function observeProcess(registry: Registry) {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS })
  for (const figure of SAMPLED) registry.removeSingleMetric(`nodejs_eventloop_lag_${figure}_seconds`)
  let before = performance.eventLoopUtilization()
  new Gauge({
    name: 'nodejs_eventloop_utilization',
    help: 'Share of the time since the last scrape in which the event loop was busy',
    registers: [registry],
    collect() {
      const now = performance.eventLoopUtilization()
      this.set(performance.eventLoopUtilization(now, before).utilization)
      before = now
    },
  })
}

type Labels = Record<string, string>

/** Adds gauges whose values are read when they are scraped. Values of an earlier scrape are dropped. */
function gaugesOf(registry: Registry) {
  return function gauge(
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => Iterable<readonly [Labels, number]> | Promise<Iterable<readonly [Labels, number]>>,
  ) {
    new Gauge({
      ...{ name, help, labelNames },
      registers: [registry],
      async collect() {
        const values = [...(await read())]
        this.reset()
        for (const [labels, value] of values) this.set(labels, value)
      },
    })
  }
}

export function createMetrics(engine: Engine, openCalls: OpenCalls): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const { store } = engine
  const tallies = new Map<string, CommandTally>()
  const errors = new Map<ErrorCode, number>()

  const latency = new Histogram({
    name: 'orchub_command_duration_seconds',
    help: 'Time from receiving a command to its receipt, including the sync to disk',
    labelNames: ['type'],
    buckets: SECONDS,
    registers,
  })
  new Counter({
    name: 'orchub_commands_total',
    help: 'Commands by type and outcome, from all channels',
    labelNames: ['type', 'outcome'],
    registers,
    collect() {
      this.reset()
      for (const [type, { outcomes }] of tallies) {
        for (const [outcome, count] of Object.entries(outcomes)) this.inc({ type, outcome }, count)
      }
    },
  })
  new Counter({
    name: 'orchub_command_errors_total',
    help: 'Commands that ended in an error, by error code',
    labelNames: ['code'],
    registers,
    collect() {
      this.reset()
      for (const [code, count] of errors) this.inc({ code }, count)
    },
  })
  const gauge = gaugesOf(registry)
  gauge('orchub_store_pending', 'Writes that wait to be committed', [], () => [[{}, store.pending()]])
  gauge(
    'orchub_deliveries_open',
    'Messages that are not confirmed yet, by recipient and delivery state',
    ['agent', 'state'],
    async () => (await countOpen(store)).map(({ agent, state, count }) => [{ agent, state }, count]),
  )
  gauge('orchub_human_requests_open', 'Requests that wait for a person', [], async () => [
    [{}, await countOpenRequests(store)],
  ])
  gauge('orchub_halted', '1 while a person has halted everything', [], () => [
    [{}, engine.halt.current() === undefined ? 0 : 1],
  ])
  gauge(
    'orchub_webhook_pending',
    'Events that wait to be posted, by webhook; a dead webhook drops its events',
    ['webhook', 'state'],
    async () =>
      (await engine.webhooks.list()).map(({ name, state, pending }) => [{ webhook: name, state }, pending]),
  )
  gauge('orchub_open_calls', 'Open streams, long polls and hooks', ['kind'], () =>
    CALL_KINDS.map((kind) => [{ kind }, openCalls.count(kind)]),
  )
  if (engine.github !== undefined) observeGithub(engine, registry)
  observeProcess(registry)

  for (const type of [...engine.registry.everyone().map((definition) => definition.type), UNKNOWN]) {
    const outcomes = { delivered: 0, ok: 0, blocked: 0, held: 0, error: 0 }
    tallies.set(type, { outcomes, latency: latency.labels(type) })
  }

  // Runs for every command, so it only adds numbers; the metrics are computed when they are scraped.
  engine.onHandled((type, receipt, milliseconds) => {
    const tally = tallies.get(type) ?? tallies.get(type.trim().toLowerCase()) ?? tallies.get(UNKNOWN)!
    tally.outcomes[receipt.status] += 1
    tally.latency.observe(milliseconds / 1000)
    if (receipt.status === 'error') errors.set(receipt.code, (errors.get(receipt.code) ?? 0) + 1)
  })

  return {
    render: async () => ({ type: registry.contentType, text: await registry.metrics() }),
    close: () => registry.clear(),
  }
}

/** Metrics of the GitHub team. Conduct flags have none, not even a count (S3.15). */
function observeGithub({ github, team }: Engine, registry: Registry) {
  let asked: Promise<GithubTeamState | undefined> | undefined
  /** All gauges of one scrape share one snapshot. */
  const state = () => {
    asked ??= (team().config.github === undefined ? Promise.resolve(undefined) : github!.state()).finally(
      () => {
        asked = undefined
      },
    )
    return asked
  }
  type TeamAgent = GithubTeamState['agents'][number]
  const gauge = gaugesOf(registry)
  /** A gauge with one value per agent; agents without a value are left out. */
  function agentGauge(name: string, help: string, read: (agent: TeamAgent) => number | undefined) {
    gauge(name, help, ['agent'], async () =>
      ((await state())?.agents ?? []).flatMap((one) => {
        const value = read(one)
        return value === undefined ? [] : [[{ agent: one.agent }, value] as const]
      }),
    )
  }
  gauge(
    'orchub_github_agent_health',
    '1 for the current status of an agent of the GitHub team: healthy, degraded or error',
    ['agent', 'status'],
    async () => ((await state())?.agents ?? []).map(({ agent, status }) => [{ agent, status }, 1]),
  )
  agentGauge(
    'orchub_github_tasks_last_hour',
    'Tasks that an agent of the GitHub team completed in the last hour',
    (agent) => agent.tasks_completed_last_hour,
  )
  agentGauge(
    'orchub_github_error_rate_percentage',
    'Percentage of tasks of the last hour that an agent of the GitHub team failed',
    (agent) => agent.error_rate_percentage,
  )
  agentGauge(
    'orchub_github_confidence_average',
    'Average confidence of an agent of the GitHub team in the last hour, 0 to 1; absent if it reported none',
    (agent) => agent.confidence_score_average,
  )
  gauge(
    'orchub_github_waiting',
    'GitHub events and actions that wait to be processed',
    ['what'],
    async () => {
      const now = await state()
      return [
        [{ what: 'events' }, now?.events_waiting ?? 0],
        [{ what: 'actions' }, now?.actions_waiting ?? 0],
      ]
    },
  )
}
