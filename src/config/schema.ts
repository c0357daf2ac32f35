import { z } from 'zod'
import { AGENT_NAME, PROGRAMS } from '../base/agent.ts'
import { ROLES } from '../base/person.ts'
import { ACTIONS, type Action, PRESETS, VERDICTS } from '../rules/rule.ts'
import { duration } from './fields.ts'
import { GithubLogin, GithubSchema } from './github.ts'
import { ModelSchema } from './models.ts'
import { WebhookSchema } from './webhooks.ts'

/** Runtimes that can run an agent. Each checks its own settings under `with`. */
const RUNTIMES = ['none', 'scripted', 'tmux', 'acp', 'llm'] as const
export type RuntimeName = (typeof RUNTIMES)[number]

/** Delivery modes for waiting messages. */
const DELIVER = ['together', 'single'] as const

/** A minimal orc.yaml, for hints. */
export const MINIMAL_EXAMPLE = 'agents: { Master: {}, Worker: { parent: Master } }'

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
const amount = z.number().positive().max(1_000_000)

const Who = (text: string) => anyNumber(z.array(someone).min(1), text)
const Narrowing = (text: string) => anyNumber(z.array(someone), text)

const approvers = z
  .array(z.string().min(1).max(64))
  .min(1)
  .max(100)
  .optional()
  .describe(
    'People whose approval counts: names from "people", or operator. Default: everyone who may decide.',
  )
const quorum = count(100)
  .optional()
  .describe('Number of people who must approve. A single rejection rejects. Default: 1.')

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
      Object.entries(ACTIONS).map(([action, { byDefault, summary }]) => [
        action,
        PermissionSchema.optional().describe(
          `Permission to ${summary}: allow, deny or ask (a person decides). To choose who decides: { verdict: ask, approvers: [ada], quorum: 1 }. Default: ${byDefault}.`,
        ),
      ]),
    ) as Record<Action, z.ZodOptional<typeof PermissionSchema>>,
  )
  .nullish()

const AgentSchema = z
  .strictObject({
    parent: name
      .optional()
      .describe('The agent that this one reports to. Used by the preset "tree" and by log oversight.'),
    role: line.optional().describe('Purpose of the agent in one line, shown to it and to the other agents.'),
    send: Narrowing(
      'Agents that this one may write to: a name, a list of names, or "*". It can only narrow the rules. An empty list means nobody.',
    ).optional(),
    receive: Narrowing(
      'Agents that may write to this one: a name, a list of names, or "*". It can only narrow the rules. An empty list means nobody.',
    ).optional(),
    permissions: PermissionsSchema.describe(
      'Permissions of this agent. They override the permissions for all agents.',
    ),
    runtime: z
      .enum(RUNTIMES)
      .optional()
      .describe(
        'Where the agent runs. tmux (the default with "program"): in its own terminal. acp: as a process without a terminal, over the Agent Client Protocol. llm: a model from "models" with a prompt. scripted: plays the script under "with". none (the default without "program"): you run it, and it connects with its token.',
      ),
    program: z
      .enum(PROGRAMS)
      .optional()
      .describe('The agent program: claude-code, codex, gemini, opencode, or any for any command line.'),
    folder: line
      .optional()
      .describe('Working folder of the agent, relative to this file. Default: the folder of this file.'),
    deliver: z
      .enum(DELIVER)
      .optional()
      .describe(
        'How waiting messages are delivered: together in one turn (the default), or one per turn (single).',
      ),
    with: z.record(z.string(), z.unknown()).nullish().describe('Settings of the program or the runtime.'),
    autostart: z
      .boolean()
      .optional()
      .describe(
        'Start the agent together with the service. Default: true. With false, start it with spawn_agent.',
      ),
    on_demand: z
      .boolean()
      .optional()
      .describe(
        'Start the agent when a task is delegated to it, even after it was stopped, instead of with the service. Default: false.',
      ),
    stop_when_idle: duration
      .optional()
      .describe(
        'Stop the agent after it was idle for this long, such as 10m, and keep its conversation. Default: never. Use it with "on_demand: true".',
      ),
    capabilities: z
      .array(line)
      .max(50)
      .nullish()
      .describe('Skills that tasks are matched against: [python, "data analysis"].'),
  })
  .nullable()
  .describe('One agent. All keys are optional.')

const RuleSchema = z
  .strictObject({
    from: Who('Senders: a name, a list of names, or "*".'),
    to: Who('Recipients: a name, a list of names, or "*".'),
    reason: line.optional().describe('Shown to the sender when a message is refused or held.'),
  })
  .describe(
    'One rule: { from: Worker, to: Master, reason: "why" }. Applies to every message from these senders to these recipients.',
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
        'Applies when no rule below does. mesh (the default): everyone may write to everyone. tree: only parent and child. hub: only to and from the hub. isolated: nobody.',
      ),
    hub: name
      .optional()
      .describe('The agent that all messages go to or come from. Use it with "preset: hub".'),
    allow: z.array(RuleSchema).nullish().describe('Messages to allow beyond the preset.'),
    forbid: z.array(RuleSchema).nullish().describe('Messages to refuse. Overrides everything else.'),
    ask: z
      .array(AskSchema)
      .nullish()
      .describe('Messages to hold until a person decides. Overrides "allow" and the preset.'),
  })
  .nullish()

const PersonSchema = z
  .strictObject({
    role: z
      .enum(ROLES)
      .optional()
      .describe(
        'operator (the default): may do everything except create tokens for people. viewer: may read everything. moderator: may read everything and decide requests for moderation.',
      ),
    github: GithubLogin,
  })
  .nullable()
  .describe('One person. All keys are optional.')

const RateSchema = z.strictObject({
  per_minute: count(1_000_000).describe('Average number per minute.'),
  burst: count(1_000_000).describe('Number allowed at once.'),
})

const LimitsSchema = z
  .strictObject({
    rate: z
      .union([off, RateSchema])
      .optional()
      .describe('Commands per agent: { per_minute, burst }, or off. Default: { per_minute: 30, burst: 10 }.'),
    pair_rate: z
      .union([off, RateSchema])
      .optional()
      .describe(
        'Messages from one agent to one other: { per_minute, burst }, or off. Default: same as "rate". Lower it to keep one recipient from using up the whole rate of a sender.',
      ),
    hops: z
      .union([off, count(1_000_000)])
      .optional()
      .describe(
        'Maximum length of a chain of replies before it is parked and a person is asked, or off. Default: 64.',
      ),
    ping_pong: z
      .union([
        off,
        z.strictObject({
          turns: z.int().min(2).max(1000).describe('Maximum number of turns between two agents.'),
          within: duration.describe('Time window for counting turns, such as 90s, 10m or 1h.'),
        }),
      ])
      .optional()
      .describe(
        'When two agents keep answering each other, park the conversation and ask a person: { turns, within }, or off. Default: { turns: 40, within: 10m }.',
      ),
    message_bytes: count(MAX_MESSAGE_BYTES)
      .optional()
      .describe(`Maximum size of a message in bytes of UTF-8. Default and maximum: ${MAX_MESSAGE_BYTES}.`),
    spend: z
      .strictObject({
        per_agent: amount.optional().describe('Pause an agent when it has spent this much.'),
        total: amount.optional().describe('Pause all agents when together they have spent this much.'),
      })
      .optional()
      .describe(
        'Spending caps in the currency of "prices". An agent that reaches one is paused and a person is notified. Resuming it grants the same amount again.',
      ),
  })
  .nullish()

const PriceSchema = z
  .strictObject({
    input: amount.describe('Per million input tokens.'),
    output: amount.describe('Per million output tokens.'),
    cache_read: amount.optional().describe('Per million tokens read from the cache. Default: same as input.'),
    cache_write: amount
      .optional()
      .describe('Per million tokens written to the cache. Default: same as input.'),
  })
  .describe('Price of a model per million tokens.')

const RunsSchema = z
  .strictObject({
    planner: z
      .union([off, name])
      .optional()
      .describe(
        'The model that proposes plans for `orc run propose GOAL`: a name from "models". Default: off.',
      ),
  })
  .nullish()

const TasksSchema = z
  .strictObject({
    timeout: duration
      .optional()
      .describe('Working time of a task, not counting time spent waiting for others. Default: 5m.'),
    retries: z
      .int()
      .min(0)
      .max(5)
      .optional()
      .describe('Number of retries of a failed task, after 1, 2, 4, 8 and 16 s. Default: 3.'),
    depth: count(20).optional().describe('Maximum depth of delegations. Default: 5.'),
    reminders: z
      .int()
      .min(0)
      .max(10)
      .optional()
      .describe('Number of reminders for an agent that does not report. Default: 2.'),
    checks: z
      .record(
        name,
        z.strictObject({
          command: z.string().min(1).max(4000).describe("A shell command, run in the worker's folder."),
          timeout: duration.optional().describe('The check fails after this long. Default: 5m.'),
        }),
      )
      .nullish()
      .describe(
        'Commands that a delegation can require, under names you choose: { tests: { command: "npm test" } }. A task completes only if they exit with 0.',
      ),
    judge: z
      .union([off, name])
      .optional()
      .describe(
        'The model or agent that reviews every completed task: a name from "models" or "agents". Default: off.',
      ),
    judge_timeout: duration
      .optional()
      .describe(
        'The delegator decides if the judge takes longer than this. Default: 5m for a model, 30m for an agent.',
      ),
    selector: z
      .union([off, name])
      .optional()
      .describe(
        'The model that chooses the agents for `orc ask`: a name from "models". Default: off, which compares words.',
      ),
    answer_check: z
      .union([off, name])
      .optional()
      .describe(
        'The model that checks whether a person\'s text answers the question: a name from "models". Default: off.',
      ),
    user_input_timeout: z
      .union([off, duration])
      .optional()
      .describe('How long a question to a person stays open, or off for no limit. Default: 24h.'),
  })
  .nullish()

const TmuxSchema = z
  .strictObject({
    socket: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, { error: 'is not a valid socket name' })
      .optional()
      .describe('Name of the tmux socket (tmux -L NAME). Default: derived from the state folder.'),
    panes_per_window: count(16).optional().describe('Number of agents per window. Default: 4.'),
  })
  .nullish()

const ServiceSchema = z
  .strictObject({
    host: line
      .optional()
      .describe('Address to listen on. Default: 127.0.0.1, reachable from this machine only.'),
    port: z
      .int()
      .min(0)
      .max(65_535)
      .optional()
      .describe(`Port to listen on; 0 picks a free one. Default: ${DEFAULTS.port}.`),
    unix_socket: line
      .optional()
      .describe('Unix socket to listen on instead of a port, relative to this file.'),
    allowed_hosts: z
      .array(z.string().regex(HOST, { error: 'is not a valid host name' }))
      .nullish()
      .describe('Further host names for browsers and clients, besides localhost and the address itself.'),
  })
  .nullish()

const StoreSchema = z
  .strictObject({
    url: line
      .optional()
      .describe(
        `The database: "sqlite:FILE", relative to this file, or "postgres://USER:\${PASSWORD}@HOST/DATABASE". \${NAME} is read from the environment. Default: SQLite in the state folder, .orc/orc.db.`,
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
    permissions: PermissionsSchema.describe('Permissions of all agents. An agent can override them.'),
    people: z
      .record(name, PersonSchema)
      .nullish()
      .describe(
        'People besides the operator, each with a token: { ada: {}, ben: { role: viewer } }. Create tokens with `orc token create NAME`.',
      ),
    limits: LimitsSchema.describe('Limits on message floods, loops and spending.'),
    prices: z
      .record(z.string().min(1).max(200), PriceSchema)
      .nullish()
      .describe(
        'Prices of models, by prefix of their name: { claude-sonnet: { input: 3, output: 15 } }. The longest matching prefix applies.',
      ),
    models: z
      .record(name, ModelSchema)
      .nullish()
      .describe(
        'Language models that the service may call, under names you choose: { fast: { provider: anthropic, model: NAME } }. Keys come from the environment only.',
      ),
    tasks: TasksSchema.describe('Delegated tasks: timeouts, retries, depth and checks.'),
    runs: RunsSchema.describe('Plans and runs.'),
    webhooks: z
      .record(name, WebhookSchema)
      .nullish()
      .describe(
        'URLs that receive events, such as chat tools, under names you choose: { chat: { url: "https://…", events: [human.asked], secret_env: NAME } }.',
      ),
    github: GithubSchema.describe(
      'A team of agents for repositories on GitHub: { secret_env: NAME, token_env: NAME }. See docs/github.md.',
    ),
    notify: z
      .union([off, z.enum(['bell', 'desktop'])])
      .optional()
      .describe(
        'How the terminal of `orc up` signals that a person is asked: desktop (the default) rings the bell and shows a notification if the terminal supports it, bell only rings, off does nothing.',
      ),
    tmux: TmuxSchema.describe('Terminals of the agents.'),
    service: ServiceSchema.describe('Address of the HTTP API.'),
    store: StoreSchema.describe('Database for all state.'),
  })
  .meta({ title: 'orc.yaml', description: 'A team of agents and the rules between them.' })

/** orc.yaml as written, and the input of `defineConfig`. */
export type ConfigInput = z.input<typeof ConfigSchema>

/** For editors, whose YAML plugins support draft 7 best. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(ConfigSchema, { target: 'draft-7', io: 'input' })
}
