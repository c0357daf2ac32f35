/**
 * How fast commands are found in text, as ratios within one run: `node bench/scan.ts [--json]`.
 *
 * The text is Markdown as coding agents write it (bench/agent-text.ts): prose, lists, tables, fenced code and tool output,
 * with commands at several densities, from rare as in transcripts to one in 1 KiB where a team talks all the time. Times are
 * medians of runs that take turns where they can, so that a busy machine disturbs both sides of a ratio alike.
 */
import type { KnownCommands } from '../src/wire/codec.ts'
import { createScanner } from '../src/wire/scanner.ts'
import { agentText } from './agent-text.ts'
import { HOSTILE_TEXTS } from './hostile-text.ts'
import { asTable, type Figure, median } from './report.ts'

const MEGABYTE = 1_048_576
const CHUNK = 65_536
const APPEND = 8192
/** Bytes of text for each command in it. The denser, the more of the time is spent on reading commands. */
const DENSITIES = { sparse: 32_768, middling: 16_384, dense: 4096, teamwork: 1024 }

/** The regular expression of the seed document, as it was applied to a session's whole content. */
const SEED = /<orc-command\s+(?:name|type)=["']([^"']+)["'](?:\s+[^>]+)?>(.*?)<\/orc-command>/gis

const SHAPES = [
  { type: 'send_message', fields: new Set(['from', 'to', 'title', 'priority', 'content']), body: 'content' },
  { type: 'update_status', fields: new Set(['agent', 'status', 'current_task']), body: 'current_task' },
  { type: 'mailbox_check', fields: new Set<string>() },
]
const table = new Map(SHAPES.map((shape) => [shape.type, shape]))
const known: KnownCommands = (type) => table.get(type)

function scan(text: Buffer, chunk = CHUNK, repetitions = 1): number {
  const scanner = createScanner(known)
  let found = 0
  for (let i = 0; i < repetitions; i++) {
    for (let at = 0; at < text.length; at += chunk)
      found += scanner.push(text.subarray(at, at + chunk)).length
  }
  return found + scanner.end().length
}

function findTags(text: Buffer): number {
  let found = 0
  for (let at = 0; at < text.length; at += CHUNK) {
    const chunk = text.subarray(at, at + CHUNK)
    for (let i = chunk.indexOf('<orc-command'); i >= 0; i = chunk.indexOf('<orc-command', i + 1)) found++
  }
  return found
}

function milliseconds(action: () => unknown): number {
  const startedAt = performance.now()
  action()
  return performance.now() - startedAt
}

function repeat(runs: number, action: () => unknown): number[] {
  return Array.from({ length: runs }, () => milliseconds(action))
}

/** The median time of each of two actions that take turns, once both are compiled. */
function compare(runs: number, one: () => unknown, other: () => unknown): [number, number] {
  const ones: number[] = []
  const others: number[] = []
  for (let run = 0; run < runs; run++) {
    ones.push(milliseconds(one))
    others.push(milliseconds(other))
  }
  return [median(ones), median(others)]
}

function measureThroughput(density: number): Figure {
  const text = agentText(8 * MEGABYTE, density)
  const [scanning, searching] = compare(
    25,
    () => scan(text),
    () => findTags(text),
  )
  return {
    name: `scanning 8 MiB in 64 KiB chunks, a command in ${density / 1024} KiB`,
    baseline: "`Buffer.indexOf('<orc-command')` over the same chunks",
    ratio: searching / scanning,
    target: { atLeast: 0.4 },
    note: `${(text.length / 1e6 / scanning).toFixed(2)} GB/s`,
  }
}

/** The seed's expression is run at 16 of the 1,024 lengths only; at all of them it takes too long. */
function measureGrowth(file: Buffer): Figure[] {
  const lengths = Array.from({ length: 16 }, (_, i) => Math.round(((i + 0.5) / 16) * file.length))
  const contents = lengths.map((length) => file.toString('utf8', 0, length))
  const runSeed = (content: string) => {
    let found = 0
    for (const _ of content.matchAll(SEED)) found++
    return found
  }
  // Not in turns: the strings of the one side leave garbage that the other would collect.
  const scanning = median(repeat(15, () => scan(file, APPEND)))
  const atEveryLength = (times: number[]) => (median(times) / lengths.length) * (file.length / APPEND)
  const alone = atEveryLength(repeat(5, () => contents.map(runSeed)))
  const decoding = atEveryLength(
    repeat(5, () => lengths.map((length) => runSeed(file.toString('utf8', 0, length)))),
  )
  const figure = (baseline: string, rerun: number): Figure => ({
    name: 'a file that grows by 8 KiB appends to 8 MiB',
    baseline,
    ratio: rerun / scanning,
    target: { atLeast: 250 },
    note: `${scanning.toFixed(1)} ms, ${(rerun / 1000).toFixed(1)} s`,
  })
  return [
    figure("the seed's regular expression over all of it, a string already, each time", alone),
    figure('the same with reading the bytes as a string, each time', decoding),
  ]
}

/** Eight short scans are timed together: on a busy machine a long one is interrupted more often than a short one. */
function measureLinearity(text: Buffer): Figure {
  const [shorts, long] = compare(
    5,
    () => repeat(8, () => scan(text)),
    () => scan(text, CHUNK, 8),
  )
  return {
    name: 'scanning 64 MiB',
    baseline: 'scanning 8 MiB',
    ratio: long / (shorts / 8),
    target: { atMost: 8.8 },
  }
}

/** Against the densest benign text, which costs the most, and against the usual kind, which is the stricter. */
function measureHostility(): Figure[] {
  const teamwork = agentText(MEGABYTE, DENSITIES.teamwork)
  const dense = agentText(MEGABYTE, DENSITIES.dense)
  return Object.entries(HOSTILE_TEXTS).map(([name, write]) => {
    const text = write()
    for (let run = 0; run < 5; run++) scan(text)
    const megabytes = text.length / MEGABYTE
    const [usual, hostile] = compare(
      9,
      () => repeat(3, () => scan(teamwork)),
      () => scan(text),
    )
    const stricter = median(repeat(9, () => scan(dense)))
    return {
      name: `a hostile megabyte: ${name}`,
      baseline: 'a benign megabyte, a command in 1 KiB',
      ratio: hostile / (usual / 3) / megabytes,
      target: { atMost: 3 },
      note: `${hostile.toFixed(1)} ms; ${(hostile / stricter / megabytes).toFixed(1)} × one with a command in 4 KiB`,
    }
  })
}

export function runScanBench(): Promise<Figure[]> {
  const text = agentText(8 * MEGABYTE, DENSITIES.sparse)
  const warmUp = agentText(MEGABYTE, DENSITIES.teamwork)
  for (let run = 0; run < 100; run++) scan(warmUp)
  return Promise.resolve([
    measureThroughput(DENSITIES.sparse),
    measureThroughput(DENSITIES.middling),
    measureThroughput(DENSITIES.dense),
    ...measureGrowth(text),
    measureLinearity(text),
    ...measureHostility(),
  ])
}

if (import.meta.main) {
  const figures = await runScanBench()
  console.log(process.argv.includes('--json') ? JSON.stringify(figures, null, 2) : asTable(figures))
}
