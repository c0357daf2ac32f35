import type { PlanInstructions } from '../runs/plan.ts'
import { failed, problem, type WorkspaceResult } from './problem.ts'

/** The required sections, in order (S4.5). */
export const SECTIONS = [
  'Objective',
  'Context',
  'Inputs Provided',
  'Requirements',
  'Success Criteria',
  'Constraints',
  'Output Expectations',
] as const
type Section = (typeof SECTIONS)[number]

/** Fills empty sections, so that every section exists. */
const NOTHING = 'None.'

/** Lines of user text that look like one of our headings or like `None.` get a backslash. */
const SPECIAL = new RegExp(
  `^\\\\*(?:# Task:|## (?:${SECTIONS.join('|')})[ \\t]*$|${NOTHING.replace('.', '\\.')}$)`,
  'i',
)

/** Formats inbox/instructions.md with exactly these sections. */
export function formatInstructions(task: string, instructions: PlanInstructions): string {
  const content: Record<Section, string> = {
    Objective: escapeText(tidy(instructions.objective)),
    Context: escapeText(tidy(instructions.context)),
    'Inputs Provided': formatItems(instructions.inputsProvided, () => '- '),
    Requirements: formatItems(instructions.requirements, (index) => `${index + 1}. `),
    'Success Criteria': formatItems(instructions.successCriteria, () => '- [ ] '),
    Constraints: formatItems(instructions.constraints, () => '- '),
    'Output Expectations': formatItems(instructions.outputExpectations, () => '- '),
  }
  const sections = SECTIONS.map((section) => `## ${section}\n${content[section] || NOTHING}\n`)
  return `# Task: ${tidy(task).replace(/\s*\n\s*/g, ' ')}\n\n${sections.join('\n')}`
}

interface InboxContents {
  readonly inputs: readonly { readonly to: string; readonly description?: string }[]
  readonly dependencies: readonly { readonly agent: string; readonly copyTo: string }[]
  /** Requested deliverables. */
  readonly outputs: readonly string[]
}

const ANY_DELIVERABLE = 'Place main deliverable in `outbox/`'
const SUMMARY_TOO = 'Include summary in `outbox/summary.md`'

/** Expected of every agent, and added wherever it is missing. */
export const isExpectedAnyway = (line: string) => line === ANY_DELIVERABLE || line === SUMMARY_TOO

/** Adds what follows from the plan where the author wrote nothing; the summary is always required (S4.7). */
export function fillIn(
  instructions: PlanInstructions,
  { inputs, dependencies, outputs }: InboxContents,
): PlanInstructions {
  const { inputsProvided, outputExpectations } = instructions
  const provided = [
    ...inputs.map(({ to, description }) => `${code(fromInbox(to))}${description ? ` - ${description}` : ''}`),
    ...dependencies.map(({ agent, copyTo }) => `${code(`${fromInbox(copyTo)}/`)} - Outputs of ${agent}`),
  ]
  const expected =
    outputExpectations.length > 0
      ? outputExpectations
      : outputs.length > 0
        ? outputs.map((output) => `Place ${code(output)}`)
        : [ANY_DELIVERABLE]
  const hasSummary = expected.some((line) => line.includes('summary.md'))
  return {
    ...instructions,
    inputsProvided: inputsProvided.length > 0 ? inputsProvided : provided,
    outputExpectations: hasSummary ? expected : [...expected, SUMMARY_TOO],
  }
}

const fromInbox = (path: string) => path.replace(/^inbox\/(?=.)/, '').replace(/\/+$/, '')

/** Puts more backticks around a name than it has inside. */
function code(name: string): string {
  const longest = Math.max(0, ...[...name.matchAll(/`+/g)].map(([run]) => run.length))
  const pad = longest === 0 ? '' : ' '
  const fence = '`'.repeat(longest + 1)
  return `${fence}${pad}${name}${pad}${fence}`
}

function formatItems(items: readonly string[], mark: (index: number) => string): string {
  return items
    .map(tidy)
    .filter((item) => item !== '')
    .map((item, index) => mark(index) + indentRest(escapeText(item), ' '.repeat(mark(index).length)))
    .join('\n')
}

function indentRest(text: string, indent: string): string {
  return text.replace(/\n(?!\n)/g, `\n${indent}`)
}

function escapeText(text: string): string {
  return text
    .split('\n')
    .map((line) => (SPECIAL.test(line) ? `\\${line}` : line))
    .join('\n')
}

function unescapeText(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.startsWith('\\') && SPECIAL.test(line) ? line.slice(1) : line))
    .join('\n')
}

/** Normalizes line ends and trims the lines and the text. */
export function tidy(text: string): string {
  return text
    .replace(/\r\n?|[\u2028\u2029]/g, '\n')
    .replace(/[^\S\n]+$/gm, '')
    .trim()
}

const HEADING = new RegExp(`^## (${SECTIONS.join('|')})[ \\t]*$`, 'i')
const TITLE = /^# Task:[ \t]*(.*)$/i
/** List markers, including those that only people use. */
const MARK = /^(?:[-*+]|\d+[.)])[ \t]+/
const BOXED_MARK = /^(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?/

export interface ReadInstructions {
  readonly task: string
  readonly instructions: PlanInstructions
}

/** Parses instructions.md written by Orchub or a person: any order, any list markers; missing sections are empty. */
export function parseInstructions(content: string): WorkspaceResult<ReadInstructions> {
  let task: string | undefined
  const sections = new Map<string, string[]>()
  let current: string[] | undefined
  for (const line of tidy(content).split('\n')) {
    const heading = HEADING.exec(line)
    if (heading !== null) {
      current = []
      sections.set(heading[1]!.toLowerCase(), current)
    } else if (current === undefined) task ??= TITLE.exec(line)?.[1]
    else current.push(line)
  }
  if (task === undefined && sections.size === 0) {
    return failed(problem('invalid', 'instructions.md', 'has neither "# Task:" nor any of its sections'))
  }
  const textOf = (section: Section) => {
    const text = tidy((sections.get(section.toLowerCase()) ?? []).join('\n'))
    return text === NOTHING ? '' : text
  }
  const itemsOf = (section: Section, mark = MARK) => splitItems(textOf(section), mark)
  const instructions = {
    objective: unescapeText(textOf('Objective')),
    context: unescapeText(textOf('Context')),
    inputsProvided: itemsOf('Inputs Provided'),
    requirements: itemsOf('Requirements'),
    successCriteria: itemsOf('Success Criteria', BOXED_MARK),
    constraints: itemsOf('Constraints'),
    outputExpectations: itemsOf('Output Expectations'),
  }
  return { ok: true, value: { task: task ?? '', instructions } }
}

/** Items begin at the margin; indented lines belong to the item above. */
function splitItems(text: string, marks: RegExp): string[] {
  const items: { indent: number; lines: string[] }[] = []
  for (const line of text === '' ? [] : text.split('\n')) {
    const mark = marks.exec(line)
    const last = items.at(-1)
    if (mark !== null) items.push({ indent: mark[0].length, lines: [line.slice(mark[0].length)] })
    else if (last === undefined) items.push({ indent: 0, lines: [line] })
    else last.lines.push(outdent(line, last.indent))
  }
  return items.map(({ lines }) => unescapeText(tidy(lines.join('\n')))).filter((item) => item !== '')
}

function outdent(line: string, most: number): string {
  const spaces = /^ */.exec(line)![0].length
  return line.slice(Math.min(spaces, most))
}
