/** Explains why a candidate is not a command (S0.23). */
import {
  type KnownCommands,
  MAX_COMMAND_TEXT,
  missingType,
  type ScanFailure,
  scanProblem,
  thousands,
} from './codec.ts'
import type { Candidate, ProblemKind } from './scan/pending-commands.ts'
import type { HiddenClosingTag } from './scan/state-machine.ts'
import type { TextWindow } from './scan/window.ts'
import { decodeTag } from './xml/decode.ts'

/** At most this much of a tag without an end is parsed. */
const ENDLESS_LIMIT = 1024

interface Details {
  /** The line on which the quoted region around the candidate begins. */
  regionLine: number
  /** The character that breaks a JSON command. */
  character: () => string
}

/** Kinds that need no parsing of the candidate's text. */
type ExplainedByKind = Exclude<ProblemKind, 'unclosed' | 'unclosed-too-long' | 'endless' | 'bare'>

export function explain(
  kind: ProblemKind,
  { start, inner, end }: Candidate,
  window: TextWindow,
  hiddenTag: () => HiddenClosingTag | undefined,
  known: KnownCommands,
): ScanFailure {
  switch (kind) {
    case 'bare':
      return missingType()
    case 'unclosed':
    case 'unclosed-too-long':
    case 'endless': {
      const tagEnd = kind === 'endless' ? Math.min(end, start + ENDLESS_LIMIT) : inner
      const opening = decodeTag(window.text(start, tagEnd), known)
      if (!opening.ok) return opening
      return kind === 'unclosed-too-long' ? tooLong() : unclosed(opening.value.shape.type, hiddenTag())
    }
    default:
      return EXPLANATIONS[kind]({ regionLine: inner, character: () => characterAt(window, inner) })
  }
}

const EXPLANATIONS: Record<ExplainedByKind, (details: Details) => ScanFailure> = {
  'object-unescaped': () =>
    scanProblem(
      'UNESCAPED_CHARACTERS',
      'A string in the JSON command contains a line end or another control character',
      'Write line ends inside strings as \\n.',
    ),
  'object-broken-string': ({ character }) =>
    scanProblem(
      'UNESCAPED_CHARACTERS',
      `A string in the JSON command ends early: ${quote(character())} follows its quotation mark`,
      'Write quotation marks inside strings as \\".',
    ),
  'object-broken': ({ character }) =>
    isTypographic(character())
      ? typographic()
      : scanProblem(
          'NOT_WELL_FORMED',
          `The JSON command is not well-formed: unexpected ${quote(character())}`,
          'Check its commas, quotation marks and braces.',
        ),
  'object-unclosed': () =>
    scanProblem(
      'MISSING_CLOSE',
      'The JSON command is not closed',
      'End it with as many closing braces as it opened: }} where it begins with {"orc_command": {.',
    ),
  'object-too-large': () =>
    scanProblem(
      'TOO_LARGE',
      `The JSON command is longer than ${thousands(MAX_COMMAND_TEXT)} bytes`,
      'Send less at once.',
    ),
  'object-quotes': ({ character }) =>
    character() === "'"
      ? scanProblem(
          'NOT_WELL_FORMED',
          'The JSON command has its names in single quotation marks',
          'JSON takes double quotation marks: {"orc_command": {"type": "…"}}.',
        )
      : typographic(),
  'in-fence': ({ regionLine }) =>
    scanProblem(
      'IN_CODE_BLOCK',
      `A command was skipped: it is inside the code block that begins on line ${regionLine}`,
      'To run it, write it outside of code blocks.',
    ),
  'in-inline-code': () =>
    scanProblem(
      'IN_CODE_BLOCK',
      'A command was skipped: it is inside inline code',
      'To run it, write it without backticks around it.',
    ),
  'in-response': ({ regionLine }) =>
    scanProblem(
      'IN_RESPONSE_BLOCK',
      `A command was skipped: it is inside the response block that begins on line ${regionLine}`,
      'Do not repeat response blocks. To run the command, write it outside of them.',
    ),
  'in-message': ({ regionLine }) =>
    scanProblem(
      'IN_ECHO',
      `A command was skipped: it is inside the repeated message that begins on line ${regionLine}`,
      'Do not repeat message frames. To run the command, write it outside of them.',
    ),
}

function tooLong(): ScanFailure {
  return scanProblem(
    'TOO_LARGE',
    `The command is not closed within ${thousands(MAX_COMMAND_TEXT)} bytes`,
    'Close it with </orc-command>, or send less at once. What follows the tag was read as ordinary text.',
  )
}

const REGIONS = {
  fence: 'a code block',
  response: 'a response block',
  message: 'a repeated message',
  cdata: 'a CDATA section',
}

function unclosed(type: string, hidden: HiddenClosingTag | undefined): ScanFailure {
  const hint =
    hidden === undefined
      ? 'End it with </orc-command>, or its tag with "/>" if it has no body. What follows the tag was read as ordinary text.'
      : `The closing tag on line ${hidden.closingLine} is inside ${REGIONS[hidden.kind]} that begins on line ${hidden.line} and does not end before it.`
  return scanProblem('MISSING_CLOSE', `${type} has no closing tag </orc-command>`, hint)
}

function characterAt(window: TextWindow, offset: number): string {
  const [character = ''] = window.text(offset, Math.min(offset + 4, window.end))
  return character
}

function typographic(): ScanFailure {
  return scanProblem(
    'NON_ASCII_QUOTES',
    'The JSON command uses typographic quotation marks',
    'Use the plain ASCII quotation mark ".',
  )
}

function isTypographic(character: string): boolean {
  return /[\u2018-\u201F\u00AB\u00BB\uFF02]/.test(character)
}

function quote(character: string): string {
  if (character === '') return 'the end'
  return character === '\n' || character === '\r' ? 'a line end' : `"${character}"`
}
