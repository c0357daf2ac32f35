/** docs/delivery.md out of what was measured. */
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
    '## What became of them',
    '',
    ...deliveryTable(measured),
    '',
    ...conditionsOf(measured),
    '## How fast',
    '',
    asTable(figures),
    '',
    ...stagesOf(measured),
    ...(missed.length === 0 ? [] : ['## What is not reached', '', ...missed.map(explain), '']),
    HOW,
  ].join('\n')
}

const HEAD = `# Deliveries, measured

\`npm run bench:delivery -- --write\` writes this page. Every message goes through all of the product: an agent in a tmux pane prints it, it is
read there, checked, stored and synced to disk, handed out, guarded, pasted, entered. What arrived is compared with what was sent
by the receiver's own record, message by message and byte by byte; what the product says of it counts for nothing.
`

const HOW = `## How it is measured

- **Raw-mode receiver** (\`tests/fakes/raw-receiver.ts\`): a program with a prompt that writes down each turn it takes, and when. One service, with its
  own SQLite file and its own tmux server; the sender's pane carries the nonce. Every eighth text is a hostile one (leading \`!\` and \`/\`,
  \`ESC[201~\`, control characters, trailing \`\\\`, \`@x\`, tabs, emoji, 200 lines, imitations of our frames and commands), and in between
  the conditions named above are made.
- **Programs**: the real ones, in the versions that \`scripts/install-agents.ts\` pins, before the scripted model of \`tests/fakes/model-server\`. What a
  program got is what its model was asked. In between: messages while it works, while its permission dialog is open, while a
  draft stands in its input box, three at once, 100 KB, and the hostile texts.
- **lost**: never arrived. **doubled**: arrived again. **into a dialog**: a key of ours answered one. **fused**: a turn held anything else beside
  our messages. **changed**: not the text that was sent, after the documented cleaning. **uncertain**: at any time called so.
- **Latency**: from before the sender prints to after the receiver took Enter (for programs: to the request at the model, which includes
  their own work), by the machine's monotonic clock; of single messages to a waiting receiver. Those that waited for a
  person, a dialog or a turn are counted above and not timed; nor are the first ones, which find programs that are still starting.
- **The same path without the store** (\`bench/delivery/direct.ts\`): the same panes, reader, scanner, envelope, guard and paste, with a list in memory in place of
  the door and the store: nothing is checked, kept, audited or synced.
- **Poll** (\`bench/delivery/poll.ts\`): every 500 ms a spawned \`capture-pane\`, then spawned \`load-buffer\`, \`paste-buffer\`, \`send-keys\`, without any wait
  in between.
- The three take turns within one run, so that whatever else the machine does meets all alike. Memory is heap and buffers after garbage
  collection with and without the idle agents, over their number. The same agents were started and stopped once before, so that what
  is compiled and cached for all of them, whatever their number, is there already; what is optimized still later is in the figure.
- Each part can be run by itself and keeps its figures until it is run again; the load of the machine is given for each.
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
    '| receiver | version | sent | submitted | lost | doubled | into a dialog | fused | changed | uncertain | p50 | p99 | |',
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
  return [`Conditions made around the raw-mode receiver: ${named.toSorted().join(', ')}.`, '']
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
    'Where the time goes, to the raw-mode receiver:',
    '',
    '| from … to … | p10 | p50 | p90 | p99 |',
    '|---|---|---|---|---|',
    line('printed → heard: pane, tmux, its log, the scanner', heard),
    line('heard → given: door, one transaction with its sync to disk', given),
    line('given → submitted: guard, paste, Enter, the receiver', submitted),
    line('all of it', raw.latencies),
    line('without the store', raw.direct),
    '',
  ]
}

function explain({ name, baseline, ratio, target, note }: Figure): string {
  const wanted = 'atLeast' in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`
  return `- **${name}** against ${baseline}: ${ratio.toFixed(2)} instead of ${wanted} (${note}). ${LIMITS[name] ?? ''}`
}

/** The obstacle, if known. */
const LIMITS: Readonly<Record<string, string>> = {
  'memory of the service per idle agent':
    'Heap snapshots put about 11 KiB on the agent itself: 5.7 of closures, 4.8 of small objects and what they close over, 0.6 of strings. The rest is code that is optimized while agents start, which does not grow with their number.',
  'poll every 500 ms with spawned commands':
    'A poll takes 250 ms in the mean, so this asks for about 2.6 ms in all, on a machine with two cores that others use too. Of the time above, the sync to disk is 0.3 ms on a quiet disk and many milliseconds on a busy one, and a message may have to wait for the sync of what was written down of the one before; from the last line to tmux until the receiver has taken Enter it is 0.5 ms (the look that the guard decides by is made, and the text laid out, while the message is stored); some 0.8 ms is our own code between the print and the sync, most of it for caches that other processes had meanwhile; the rest is the wake-ups of five processes.',
}
