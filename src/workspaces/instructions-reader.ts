import type { PlanInstructions } from '../runs/plan.ts'
import { NOTHING, SECTIONS, type Section, tidy, unescapeText } from './instructions.ts'
import { failed, type Outcome, problem } from './problem.ts'

const HEADING = new RegExp(`^## (${SECTIONS.join('|')})[ \\t]*$`, 'i')
const TITLE = /^# Task:[ \t]*(.*)$/i
/** Marks that people use as well as ours. */
const MARK = /^(?:[-*+]|\d+[.)])[ \t]+/
const BOXED_MARK = /^(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?/

export interface ReadInstructions {
  readonly task: string
  readonly instructions: PlanInstructions
}

/** Reads instructions.md back, ours or a person's: any order, any list marks; a section that is missing is empty. */
export function parseInstructions(content: string): Outcome<ReadInstructions> {
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

/** Items begin at the margin; what is indented below belongs to the one above. */
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
