/**
 * How fast the scanner finds commands in text: `node bench/scan.ts [--json]`.
 *
 * The benign text is Markdown as coding agents write it (bench/agent-text.ts). Times are medians of runs that take turns, so
 * that a busy machine disturbs both sides of a ratio alike.
 */
import type { KnownCommands } from '../src/protocol/codec.ts'
import { createScanner } from '../src/protocol/scanner.ts'
import { agentText } from './agent-text.ts'
import { HOSTILE_TEXTS } from './hostile-text.ts'
import { asTable, type Figure, median } from './report.ts'

const MEGABYTE = 1_048_576
const CHUNK = 65_536
/** Bytes of text per command in a team that talks all the time. */
const DENSE = 1024

const SHAPES = [
  { type: 'send_message', fields: new Set(['from', 'to', 'title', 'priority', 'content']), body: 'content' },
  { type: 'update_status', fields: new Set(['agent', 'status', 'current_task']), body: 'current_task' },
  { type: 'mailbox_check', fields: new Set<string>() },
]
const table = new Map(SHAPES.map((shape) => [shape.type, shape]))
const known: KnownCommands = (type) => table.get(type)

function scan(text: Buffer): number {
  const scanner = createScanner(known)
  let found = 0
  for (let at = 0; at < text.length; at += CHUNK) found += scanner.push(text.subarray(at, at + CHUNK)).length
  return found + scanner.end().length
}

function milliseconds(action: () => unknown): number {
  const startedAt = performance.now()
  action()
  return performance.now() - startedAt
}

/** The median time of each of two alternating actions. */
function compare(runs: number, one: () => unknown, other: () => unknown): [number, number] {
  const ones: number[] = []
  const others: number[] = []
  for (let run = 0; run < runs; run++) {
    ones.push(milliseconds(one))
    others.push(milliseconds(other))
  }
  return [median(ones), median(others)]
}

/** The ratio shows that the time is linear; the note has the throughput, which has no target. */
function measureThroughput(): Figure {
  const short = agentText(MEGABYTE, DENSE)
  const long = agentText(8 * MEGABYTE, DENSE)
  const [shortTime, longTime] = compare(
    9,
    () => scan(short),
    () => scan(long),
  )
  return {
    name: 'scanning 8 MiB in 64 KiB chunks, a command in 1 KiB',
    baseline: 'scanning 1 MiB',
    ratio: longTime / shortTime,
    target: { atMost: 10 },
    note: `${(long.length / 1e3 / longTime).toFixed(0)} MB/s`,
  }
}

function measureHostility(): Figure[] {
  const benign = agentText(MEGABYTE, DENSE)
  return Object.entries(HOSTILE_TEXTS).map(([name, write]) => {
    const text = write()
    for (let run = 0; run < 5; run++) scan(text)
    const [benignTime, hostileTime] = compare(
      9,
      () => scan(benign),
      () => scan(text),
    )
    return {
      name: `a hostile megabyte: ${name}`,
      baseline: 'a benign megabyte, a command in 1 KiB',
      ratio: hostileTime / benignTime / (text.length / MEGABYTE),
      target: { atMost: 10 },
      note: `${hostileTime.toFixed(1)} ms`,
    }
  })
}

export function runScanBench(): Promise<Figure[]> {
  const warmUp = agentText(MEGABYTE, DENSE)
  for (let run = 0; run < 100; run++) scan(warmUp)
  return Promise.resolve([measureThroughput(), ...measureHostility()])
}

if (import.meta.main) {
  const figures = await runScanBench()
  console.log(process.argv.includes('--json') ? JSON.stringify(figures, null, 2) : asTable(figures))
}
