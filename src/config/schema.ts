import { z } from 'zod'
import { AGENT_NAME } from '../base/agent.ts'
import { DURATION } from '../base/durations.ts'
import { ROLES } from '../base/person.ts'
import { PROGRAMS } from '../base/program-names.ts'
import { ACTIONS, type Action, PRESETS, VERDICTS } from '../rules/rule.ts'
import { GithubLogin, GithubSchema } from './github.ts'
import { ModelSchema } from './models.ts'
import { WebhookSchema } from './webhooks.ts'

/** Runtimes that can run an agent. Each checks its own settings under `with`. */
export const RUNTIMES = ['none', 'scripted', 'tmux', 'acp', 'llm'] as const
export type RuntimeName = (typeof RUNTIMES)[number]

/** How waiting messages reach an agent. */
export const DELIVER = ['together', 'single'] as const

/** A minimal orc.yaml, for hints. */
export const SMALLEST = 'agents: { Master: {}, Worker: { parent: Master } }'

/** C20: may be lowered, never raised. */
export const MAX_MESSAGE_BYTES = 102_400

export const DEFAULTS = {
  rate: { perMinute: 30, burst: 10 },
  hops: 64,
  pingPong: { turns: 40, withinMs: 10 * 60_000 },
  port: 7420,
  host: '127.0.0.1',
} as const

/** Ends up in prompts, terminals and logs, so control characters are refused. */
const line = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$/, { error: 'must be one line without control characters' })
const name = z.string().regex(AGENT_NAME, { error: 'is not a valid agent name' })
const someone = z.string().min(1).describe('The name of an agent, or "*" for all.')
const anyNumber = (list: z.ZodArray<typeof someone>, text: string) => z.union([someone, list]).describe(text)
/** A host name or address with an optional port; no scheme, path or wildcard. */
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/
const off = z.union([z.literal('off'), z.literal(false)])
const count = (most: number) => z.int().min(1).max(most)
const money = z.number().positive().max(1_000_000)

const duration = z.string().regex(DURATION, { error: 'is not a duration' })

const Who = (text: string) => anyNumber(z.array(someone).min(1), text)
const Narrowing = (text: string) => anyNumber(z.array(someone), text)

const approvers = z
  .array(z.string().min(1).max(64))
  .min(1)
  .max(100)
  .optional()
  .describe('Whose approval counts: names of "people", or operator. Default: everyone who may decide.')
const quorum = count(100)
  .optional()
  .describe('How many different people must approve. One rejection rejects. Default: 1.')

const PermissionSchema = z.union([
  z.enum(VERDICTS),
  z.strictObject({
    verdict: z.literal('ask').describe('ask: a person decides each time.'),
    approvers,
    quorum,
  }),
])

const PermissionsSchema = z
  .strictObject(
    Object.fromEntries(
      Object.entries(ACTIONS).map(([action, { silent, summary }]) => [
        action,
        PermissionSchema.optional().describe(
          `May ${summary}: allow, deny, or ask a person; { verdict: ask, approvers: [ada], quorum: 1 } says whom. Default: ${silent}.`,
        ),
      ]),
    ) as Record<Action, z.ZodOptional<typeof PermissionSchema>>,
  )
  .nullish()

const AgentSchema = z
  .strictObject({
    parent: name
      .optional()
      .describe('The agent this one reports to. The preset "tree" and the oversight of logs go by it.'),
    role: line
      .optional()
      .describe('What the agent is for, in one line. It is told to the agent and to the others.'),
    send: Narrowing(
      'Whom this agent may write to: a name, a list of names, or "*". It narrows what the rules allow and never widens it. An empty list: nobody.',
    ).optional(),
    receive: Narrowing(
      'From whom this agent accepts messages: a name, a list of names, or "*". It narrows what the rules allow and never widens it. An empty list: nobody.',
    ).optional(),
    permissions: PermissionsSchema.describe(
      'What this agent may do. It wins over the permissions for all agents.',
    ),
    runtime: z
      .enum(RUNTIMES)
      .optional()
      .describe(
        'What runs the agent. tmux (the default where a program is named): in a terminal of its own. acp: as a process without a terminal, over the Agent Client Protocol. llm: a model of "models" with a prompt, and nothing else. scripted: plays the script under "with". none (the default otherwise): any program that holds its token.',
      ),
    program: z
      .enum(PROGRAMS)
      .optional()
      .describe('Which agent program: claude-code, codex, gemini, opencode, or any command line.'),
    folder: line
      .optional()
      .describe('Where the agent works. Relative to this file; without it, the folder of this file.'),
    deliver: z
      .enum(DELIVER)
      .optional()
      .describe(
        'Messages that wait together reach the agent as one turn (together, the default), or one by one (single).',
      ),
    with: z
      .record(z.string(), z.unknown())
      .nullish()
      .describe('Settings for the program or the runtime, as it defines them.'),
    autostart: z
      .boolean()
      .optional()
      .describe(
        'Whether the runtime starts the agent together with the service (default: true), or only when asked with spawn_agent.',
      ),
    on_demand: z
      .boolean()
      .optional()
      .describe(
        'true: started when something is delegated to it, even if it was stopped, and not with the service. Default: false.',
      ),
    stop_when_idle: duration
      .optional()
      .describe(
        'Stopped after it had nothing to do for so long, its conversation kept: 10m. Default: never. Goes with "on_demand: true".',
      ),
    capabilities: z
      .array(line)
      .max(50)
      .nullish()
      .describe('What it is good at, in words that tasks are matched with: [python, "data analysis"].'),
  })
  .nullable()
  .describe('One agent. Nothing in it is required.')

const RuleSchema = z
  .strictObject({
    from: Who('Who sends: a name, a list of names, or "*".'),
    to: Who('Who receives: a name, a list of names, or "*".'),
    reason: line.optional().describe('Told to the sender when a message is refused or held.'),
  })
  .describe(
    'One rule: { from: Worker, to: Master, reason: "why" }. It concerns every message from one of these senders to one of these recipients.',
  )

const AskSchema = RuleSchema.extend({ approvers, quorum }).describe(
  'One rule: { from: Worker, to: Master, approvers: [ada, ben], quorum: 2 }. Every such message waits for a person.',
)

const RulesSchema = z
  .strictObject({
    preset: z
      .enum(PRESETS)
      .optional()
      .describe(
        'Where no rule below applies. mesh (the default): everyone to everyone. tree: only parent and child. hub: only to and from the hub. isolated: nobody.',
      ),
    hub: name.optional().describe('The agent that all messages pass through; goes with "preset: hub".'),
    allow: z.array(RuleSchema).nullish().describe('Messages allowed beyond the preset.'),
    forbid: z.array(RuleSchema).nullish().describe('Messages refused. Beats everything else.'),
    ask: z
      .array(AskSchema)
      .nullish()
      .describe('Messages held until a person has decided on each. Beats allow and the preset.'),
  })
  .nullish()

const PersonSchema = z
  .strictObject({
    role: z
      .enum(ROLES)
      .optional()
      .describe(
        'operator (the default): may do everything, but give out tokens of people. viewer: may read what the operator reads, and change nothing. moderator: that, and decide on requests for moderation.',
      ),
    github: GithubLogin,
  })
  .nullable()
  .describe('One person. Nothing in it is required.')

const RateSchema = z.strictObject({
  per_minute: count(1_000_000).describe('How many a minute in the long run.'),
  burst: count(1_000_000).describe('How many at once.'),
})

const LimitsSchema = z
  .strictObject({
    rate: z
      .union([off, RateSchema])
      .optional()
      .describe('Commands of one agent: { per_minute: 30, burst: 10 } unless said otherwise, or off.'),
    pair_rate: z
      .union([off, RateSchema])
      .optional()
      .describe(
        'Messages from one agent to one other: { per_minute, burst }, or off. Default: the same as "rate", so lower it to keep one pair from using up the whole allowance of a sender.',
      ),
    hops: z
      .union([off, count(1_000_000)])
      .optional()
      .describe(
        'How long a chain of replies may get before it is parked and a person is asked. Default: 64, or off.',
      ),
    ping_pong: z
      .union([
        off,
        z.strictObject({
          turns: z.int().min(2).max(1000).describe('How many turns two agents may take with each other.'),
          within: z
            .string()
            .regex(DURATION, { error: 'is not a duration' })
            .describe('The window in which turns are counted, such as 90s, 10m or 1h.'),
        }),
      ])
      .optional()
      .describe(
        'Two agents answering each other without end are parked and a person is asked. Default: { turns: 40, within: 10m }, or off.',
      ),
    message_bytes: count(MAX_MESSAGE_BYTES)
      .optional()
      .describe(`The largest message, in bytes of UTF-8. Default and maximum: ${MAX_MESSAGE_BYTES}.`),
    spend: z
      .strictObject({
        per_agent: money.optional().describe('What one agent may spend before it is paused.'),
        total: money.optional().describe('What all agents together may spend before all are paused.'),
      })
      .optional()
      .describe(
        'Caps on what agents spend, in the currency of "prices". An agent that reaches one is paused and a person is told; resuming it grants the same sum again.',
      ),
  })
  .nullish()

const PriceSchema = z
  .strictObject({
    input: money.describe('Per million input tokens.'),
    output: money.describe('Per million output tokens.'),
    cache_read: money.optional().describe('Per million tokens read from the cache. Default: as input.'),
    cache_write: money.optional().describe('Per million tokens written to the cache. Default: as input.'),
  })
  .describe('What a model costs, per million tokens.')

const RunsSchema = z
  .strictObject({
    planner: z
      .union([off, name])
      .optional()
      .describe('A name from "models": it proposes plans for `orc plan GOAL`. Default: off.'),
  })
  .nullish()

const TasksSchema = z
  .strictObject({
    timeout: duration
      .optional()
      .describe('Working time of a task, the waits for others not counted. Default: 5m.'),
    retries: z
      .int()
      .min(0)
      .max(5)
      .optional()
      .describe('How often a failed task is tried again, after 1, 2, 4, 8 and 16 s. Default: 3.'),
    depth: count(20).optional().describe('How deep delegations may go. Default: 5.'),
    reminders: z
      .int()
      .min(0)
      .max(10)
      .optional()
      .describe('How often an agent that forgets to report is reminded. Default: 2.'),
    checks: z
      .record(
        name,
        z.strictObject({
          command: z
            .string()
            .min(1)
            .max(4000)
            .describe("A command for the shell, run in the worker's folder."),
          timeout: duration.optional().describe('After which it has failed. Default: 5m.'),
        }),
      )
      .nullish()
      .describe(
        'Commands that a delegation may name, by a name of your choice: { tests: { command: "npm test" } }. A report of completed counts only if they exit with 0.',
      ),
    judge: z
      .union([off, name])
      .optional()
      .describe(
        'A name from "models" or "agents": that model, or that agent as a reviewer, judges every report of completed. Default: off.',
      ),
    judge_timeout: duration
      .optional()
      .describe('After which the delegator decides. Default: 5m for a model, 30m for an agent.'),
    selector: z
      .union([off, name])
      .optional()
      .describe(
        'A name from "models": that model chooses who is needed for what orc ask asks. Default: off, words are compared.',
      ),
    answer_check: z
      .union([off, name])
      .optional()
      .describe(
        'A name from "models": that model looks whether what a person writes answers the question. Default: off.',
      ),
    user_input_timeout: z
      .union([off, duration])
      .optional()
      .describe(
        'How long a question to a person stays open: 24h, or off for as long as it takes. Default: 24h.',
      ),
  })
  .nullish()

const TmuxSchema = z
  .strictObject({
    socket: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, { error: 'is not a valid socket name' })
      .optional()
      .describe('The name of the tmux socket (tmux -L NAME). Default: one made from the state folder.'),
    panes_per_window: count(16).optional().describe('How many agents share a window. Default: 4.'),
  })
  .nullish()

const ServiceSchema = z
  .strictObject({
    host: line
      .optional()
      .describe('The address to listen on. Default: 127.0.0.1, reachable from this machine only.'),
    port: z
      .int()
      .min(0)
      .max(65_535)
      .optional()
      .describe(`The port to listen on. Default: ${DEFAULTS.port}; 0 takes any free one.`),
    unix_socket: line
      .optional()
      .describe('Listen on this Unix socket instead of a port. Relative to this file.'),
    allowed_hosts: z
      .array(z.string().regex(HOST, { error: 'is not a valid host name' }))
      .nullish()
      .describe(
        'Host names, besides localhost and the address itself, under which browsers and clients may reach the service.',
      ),
  })
  .nullish()

const StoreSchema = z
  .strictObject({
    url: line
      .optional()
      .describe(
        `Where messages are kept: "sqlite:FILE", relative to this file, or "postgres://USER:\${PASSWORD}@HOST/DATABASE". \${NAME} is read from the environment. Default: sqlite in the state folder, .orc/orc.db.`,
      ),
  })
  .nullish()

/** The shape of orc.yaml. Relations between keys (does the parent exist?) are checked in `resolveConfig`. */
export const ConfigSchema = z
  .strictObject({
    agents: z
      .record(name, AgentSchema)
      .describe(
        'The team, by name: { Master: {}, Worker: { parent: Master } }. A name starts with a letter, then letters, digits, _ and -, at most 64.',
      ),
    rules: RulesSchema.describe('Who may write to whom. Without it, everyone may write to everyone.'),
    permissions: PermissionsSchema.describe(
      'What agents may do, for all that have no permissions of their own on it.',
    ),
    people: z
      .record(name, PersonSchema)
      .nullish()
      .describe(
        'People with tokens of their own, besides the operator: { ada: {}, ben: { role: viewer } }. orc token NAME makes one.',
      ),
    limits: LimitsSchema.describe('Brakes on floods and on agents that keep each other busy.'),
    prices: z
      .record(z.string().min(1).max(200), PriceSchema)
      .nullish()
      .describe(
        'What models cost, by the beginning of their name: { claude-sonnet: { input: 3, output: 15 } }. The longest that fits counts.',
      ),
    models: z
      .record(name, ModelSchema)
      .nullish()
      .describe(
        'Language models that the service may call, by a name of your choice: { fast: { provider: anthropic, model: NAME } }. Keys come from the environment only.',
      ),
    tasks: TasksSchema.describe('What is delegated: how long, how often, how deep, and how it is checked.'),
    runs: RunsSchema.describe('Plans and runs.'),
    webhooks: z
      .record(name, WebhookSchema)
      .nullish()
      .describe(
        'Where events are posted, for chat tools, by a name of your choice: { chat: { url: "https://…", events: [human.asked], secret_env: NAME } }.',
      ),
    github: GithubSchema.describe(
      'A team of agents for repositories on GitHub: { secret_env: NAME, token_env: NAME }. See docs/github.md.',
    ),
    notify: z
      .union([off, z.enum(['bell', 'desktop'])])
      .optional()
      .describe(
        'The terminal that runs "orc up" when a person is asked: desktop (the default) rings its bell and shows a notification where the terminal can, bell only rings, off does nothing.',
      ),
    tmux: TmuxSchema.describe('The terminals of the agents.'),
    service: ServiceSchema.describe('Where the API listens.'),
    store: StoreSchema.describe('Where state is kept.'),
  })
  .meta({ title: 'orc.yaml', description: 'A team of agents and the rules between them.' })

/** orc.yaml as written; what `defineConfig` takes. */
export type ConfigInput = z.input<typeof ConfigSchema>

/** For editors, whose YAML plugins support draft 7 best. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(ConfigSchema, { target: 'draft-7', io: 'input' })
}
