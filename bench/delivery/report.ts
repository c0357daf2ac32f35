/** Renders docs/delivery.md from the measurements. */
import { AGENTS } from '../../scripts/install-agents.ts'
import { asTable, type Figure, meets } from '../report.ts'
import type { PanesResult } from './panes.ts'
import { PROGRAMS, type ProgramResult } from './programs.ts'
import { milliseconds, quantile } from './quantile.ts'
import type { RawResult } from './raw.ts'
import type { Tally } from './tally.ts'

export interface Measured {
  raw?: RawResult
  panes?: PanesResult
  programs: Record<string, ProgramResult>
  machine?: string
  /** The load average before and after each part. */
  loads?: Record<string, readonly [number, number]>
}

const KIB = 1024

export function renderReport(measured: Measured): string {
  const figures = figuresOf(measured)
  const missed = figures.filter((figure) => !meets(figure))
  return [
    HEAD,
    `Measured on ${measured.machine}. ${loadsOf(measured)}`,
    '',
    '## Results',
    '',
    ...deliveryTable(measured),
    '',
    ...conditionsOf(measured),
    '## Speed',
    '',
    asTable(figures),
    '',
    ...stagesOf(measured),
    ...(missed.length === 0 ? [] : ['## Missed targets', '', ...missed.map(explain), '']),
    HOW,
  ].join('\n')
}

const HEAD = `# Delivery benchmark

\`npm run bench:delivery -- --write\` generates this page. Every message takes the whole path: an agent in a tmux pane prints it; Orchub reads
it from the pane, checks it, stores it and syncs it to disk, hands it out, checks the receiver's pane, pastes it and presses Enter. The
benchmark compares each message, byte by byte, with what the receiver itself recorded, and ignores what Orchub reports.
`

const HOW = `## Method

- **Raw-mode receiver** (\`tests/fakes/raw-receiver.ts\`): a program with a prompt that records each turn it takes and when. One service uses
  its own SQLite file and its own tmux server; the sender's pane carries the nonce. Every eighth text is hostile (leading \`!\` and \`/\`,
  \`ESC[201~\`, control characters, trailing \`\\\`, \`@x\`, tabs, emoji, 200 lines, imitations of Orchub's frames and commands). Between
  messages, the benchmark creates the conditions listed above.
- **Programs**: the real agent programs, in the versions pinned in \`scripts/install-agents.ts\`, with the scripted model server of
  \`tests/fakes/model-server\`. A program received a message if its model was sent it. They also get messages while they work, while a
  permission dialog is open and while a draft is in the input box, three messages at once, 100 KB messages and the hostile texts.
- **lost**: never arrived. **duplicated**: arrived more than once. **into a dialog**: a key that Orchub sent answered a dialog. **merged**: a turn
  contained anything besides Orchub's messages. **changed**: differs from the text sent, after the documented sanitizing. **uncertain**:
  reported as uncertain at any time.
- **Latency**: by the machine's monotonic clock, from just before the sender prints to just after the receiver takes Enter. For programs it
  ends with the request to the model, so it includes their own work. Only single messages to a waiting receiver are timed: messages
  that waited for a person, a dialog or a turn are counted but not timed, nor are the first ones, sent while programs still start.
- **The same path without the store** (\`bench/delivery/direct.ts\`): the same panes, reader, scanner, envelope, guard and paste, with a list in
  memory instead of the door and the store. It checks, stores, audits and syncs nothing.
- **Poll** (\`bench/delivery/poll.ts\`): spawns \`capture-pane\` every 500 ms, then \`load-buffer\`, \`paste-buffer\` and \`send-keys\`, without pauses.
- The three alternate within one run, so that other load on the machine affects them alike. Memory is heap plus buffers after garbage
  collection, with idle agents minus without, divided by their number. The same agents were started and stopped once before, so that
  code compiled once for all agents isn't counted; code that is optimized later is.
- Each part can run alone and keeps its figures until it runs again; the load average is given for each.
`

function deliveryTable({ raw, panes, programs }: Measured): string[] {
  const rows = [
    row('raw-mode receiver', '', raw?.tally, raw?.latencies),
    row(`the same with ${panes?.panes ?? 100} panes`, '', panes?.tally, panes?.latencies),
    ...PROGRAMS.map(({ agent, program }) => {
      const result = programs[agent]
      if (result === undefined) return row(program, AGENTS[agent].version, undefined, undefined)
      return row(result.name, result.version, result.tally, result.latencies, result.problem)
    }),
  ]
  return [
    '| receiver | version | sent | submitted | lost | duplicated | into a dialog | merged | changed | uncertain | p50 | p99 | |',
    '|---|---|---|---|---|---|---|---|---|---|---|---|---|',
    ...rows,
  ]
}

function row(
  name: string,
  version: string,
  tally: Tally | undefined,
  latencies: readonly number[] | undefined,
  problem = '',
): string {
  if (tally === undefined)
    return `| ${name} | ${version} | ${'| '.repeat(10)}| not run${problem && `: ${problem}`} |`
  const { sent, submitted, lost, doubled, intoDialog, fused, changed, uncertain } = tally
  const counts = [sent, submitted, lost, doubled, intoDialog, fused, changed, uncertain]
  const times = [0.5, 0.99].map((share) => milliseconds(quantile(latencies ?? [], share)))
  return `| ${[name, version, ...counts, ...times, problem].join(' | ')} |`
}

function loadsOf({ loads = {} }: Measured): string {
  const parts = Object.entries(loads).map(
    ([part, [from, to]]) => `${part} ${from.toFixed(1)} and ${to.toFixed(1)}`,
  )
  return parts.length === 0 ? '' : `Load average before and after each part: ${parts.join(', ')}.`
}

function conditionsOf({ raw }: Measured): string[] {
  if (raw === undefined) return []
  const named = Object.entries(raw.conditions).map(([name, count]) => `${name} (${count})`)
  return [`Conditions created around the raw-mode receiver: ${named.toSorted().join(', ')}.`, '']
}

function figuresOf({ raw, panes }: Measured): Figure[] {
  const figures: Figure[] = []
  if (raw !== undefined) {
    const [product, direct, polled] = [raw.latencies, raw.direct, raw.polled].map((all) => quantile(all, 0.5))
    figures.push(
      {
        name: 'p50 to the raw-mode receiver',
        baseline: 'the same path without the store',
        ratio: product! / direct!,
        target: { atMost: 2 },
        note: `${milliseconds(product!)}, ${milliseconds(direct!)}`,
      },
      {
        name: 'poll every 500 ms with spawned commands',
        baseline: 'p50 to the raw-mode receiver',
        ratio: polled! / product!,
        target: { atLeast: 100 },
        note: `${milliseconds(polled!)}, ${milliseconds(product!)}; without the store ${(polled! / direct!).toFixed(0)}`,
      },
    )
  }
  if (panes !== undefined) {
    const [p50, p99] = [quantile(panes.latencies, 0.5), quantile(panes.latencies, 0.99)]
    const { heap, resident, agents, tenMore } = panes.memory
    figures.push(
      {
        name: `p99 with ${panes.panes} panes, ${panes.noisy} of them noisy`,
        baseline: 'p50 of the same',
        ratio: p99 / p50,
        target: { atMost: 10 },
        note: `${milliseconds(p99)}, ${milliseconds(p50)}`,
      },
      {
        name: 'memory of the service per idle agent',
        baseline: '16 KiB',
        ratio: heap / KIB / 16,
        target: { atMost: 1 },
        note: `${kib(heap)} over ${agents} agents; the median of ten more ${kib(tenMore)}; resident ${kib(resident)}`,
      },
    )
  }
  return figures
}

function kib(bytes: number): string {
  return `${(bytes / KIB).toFixed(1)} KiB`
}

function stagesOf({ raw }: Measured): string[] {
  if (raw === undefined || raw.stages.heard.length === 0) return []
  const { heard, given, submitted } = raw.stages
  const line = (name: string, values: readonly number[]) =>
    `| ${name} | ${[0.1, 0.5, 0.9, 0.99].map((share) => milliseconds(quantile(values, share))).join(' | ')} |`
  return [
    'Where the time goes, for the raw-mode receiver:',
    '',
    '| from … to … | p10 | p50 | p90 | p99 |',
    '|---|---|---|---|---|',
    line('printed → read: pane, tmux, its log, the scanner', heard),
    line('read → handed over: door, one transaction with its sync to disk', given),
    line('handed over → submitted: guard, paste, Enter, the receiver', submitted),
    line('total', raw.latencies),
    line('without the store', raw.direct),
    '',
  ]
}

function explain({ name, baseline, ratio, target, note }: Figure): string {
  const wanted = 'atLeast' in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`
  return `- **${name}** against ${baseline}: ${ratio.toFixed(2)} instead of ${wanted} (${note}). ${LIMITS[name] ?? ''}`
}

/** Why a target was missed, if known. */
const LIMITS: Readonly<Record<string, string>> = {
  'memory of the service per idle agent':
    'According to heap snapshots, the agent itself takes about 11 KiB: 5.7 for closures, 4.8 for small objects and what they reference, 0.6 for strings. The rest is code that is optimized while agents start and does not grow with their number.',
  'poll every 500 ms with spawned commands':
    'A poll takes 250 ms on average, so the target leaves about 2.6 ms for everything, on a shared machine with two cores. The sync to disk takes 0.3 ms on a quiet disk and many milliseconds on a busy one, and a message may have to wait for the sync of the previous record. From the last command to tmux until the receiver takes Enter it takes 0.5 ms. About 0.8 ms is spent in the service between the print and the sync, mostly CPU cache misses after other processes ran. The rest is waking up five processes.',
}
