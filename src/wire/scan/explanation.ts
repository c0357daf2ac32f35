/** What to say about something that was found but is no command, where its text need not be decoded for that. */
import { MAX_COMMAND_TEXT, type Problem, problem } from '../codec.ts'
import type { CommandKind, Kind } from './ledger.ts'

/** What the machine knows of it beyond its kind. */
export interface Finding {
  /** The line on which the quotation around it begins. */
  quotedSince: number
  /** The character that is the problem in a JSON command. */
  character: () => string
}

export type Explained = Exclude<Kind, CommandKind | 'unclosed' | 'unclosed-too-long' | 'endless' | 'bare'>

const EXPLANATIONS: Record<Explained, (finding: Finding) => Problem> = {
  'object-unescaped': () =>
    problem(
      'UNESCAPED_CHARACTERS',
      'A string in the JSON command contains a line end or another control character',
      'Write line ends inside strings as \\n.',
    ),
  'object-broken-string': ({ character }) =>
    problem(
      'UNESCAPED_CHARACTERS',
      `A string in the JSON command ends early: ${quote(character())} follows its quotation mark`,
      'Write quotation marks inside strings as \\".',
    ),
  'object-broken': ({ character }) =>
    isTypographic(character())
      ? typographic()
      : problem(
          'NOT_WELL_FORMED',
          `The JSON command is not well-formed: unexpected ${quote(character())}`,
          'Check its commas, quotation marks and braces.',
        ),
  'object-unclosed': () =>
    problem(
      'MISSING_CLOSE',
      'The JSON command is not closed',
      'End it with as many closing braces as it opened: }} where it begins with {"orc_command": {.',
    ),
  'object-too-large': () =>
    problem(
      'TOO_LARGE',
      `The JSON command is longer than ${thousands(MAX_COMMAND_TEXT)} bytes`,
      'Send less at once.',
    ),
  'object-quotes': ({ character }) =>
    character() === "'"
      ? problem(
          'NOT_WELL_FORMED',
          'The JSON command has its names in single quotation marks',
          'JSON takes double quotation marks: {"orc_command": {"type": "…"}}.',
        )
      : typographic(),
  'in-fence': ({ quotedSince }) =>
    problem(
      'IN_CODE_BLOCK',
      `A command was skipped: it is inside the code block that begins on line ${quotedSince}`,
      'To have it carried out, write it outside of code blocks.',
    ),
  'in-inline-code': () =>
    problem(
      'IN_CODE_BLOCK',
      'A command was skipped: it is inside inline code',
      'To have it carried out, write it without backticks around it.',
    ),
  'in-response': ({ quotedSince }) =>
    problem(
      'IN_RESPONSE_BLOCK',
      `A command was skipped: it is inside the response block that begins on line ${quotedSince}`,
      'Do not repeat response blocks; to have the command carried out, write it outside of them.',
    ),
  'in-message': ({ quotedSince }) =>
    problem(
      'IN_ECHO',
      `A command was skipped: it is inside the message repeated from line ${quotedSince} on`,
      'Do not repeat the frame of messages; to have the command carried out, write it outside of it.',
    ),
}

export function explain(kind: Explained, finding: Finding): Problem {
  return EXPLANATIONS[kind](finding)
}

function typographic(): Problem {
  return problem(
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

export function thousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}
