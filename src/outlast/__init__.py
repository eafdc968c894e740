"""Outlast: background jobs for web applications that outlast the tab, the worker and the deploy."""

from outlast.app import Outlast
from outlast.client._async import Client
from outlast.client._sync import SyncClient
from outlast.client.submitting import Submission
from outlast.domain.conflicts import AlreadyCompleted, Conflict, Expired, NotReady, StaleVersion, UniqueActive
from outlast.domain.cron import Cron
from outlast.domain.defaults import Settings
from outlast.domain.effects import Confirmed
from outlast.domain.errors import (
    Contended,
    Forbidden,
    Invalid,
    KeyReused,
    Locked,
    NotAParent,
    NotFound,
    NotMigrated,
    NotRegistered,
    OutcomeUnknown,
    OutlastError,
    QuotaExceeded,
    StillAdmitting,
    StoreUnavailable,
    TransactionMisused,
)
from outlast.domain.failures import Ask, Failure, Permanent, Refused, Retry, Snooze, Stopped
from outlast.domain.kinds import AnyTask, ItemTask, Kind, Plan, PlannedTask, Target, Task, TaskOptions
from outlast.domain.limits import Limit
from outlast.domain.model import (
    Action,
    AttemptView,
    Attention,
    EffectView,
    Forgotten,
    Handle,
    JobView,
    Outcome,
    Page,
    Principal,
    Progress,
    QueueChange,
    QueueView,
    Recovery,
    ScheduleView,
    State,
    TargetRef,
    TaskState,
    TaskView,
    Unique,
    UniquePolicy,
)
from outlast.domain.retry import RetryPolicy
from outlast.domain.schedules import Every
from outlast.worker.committing import SyncTransaction, Transaction
from outlast.worker.completion import Completion
from outlast.worker.context import Context, SyncContext

__version__ = "0.1.0.dev0"

__all__ = [
    "Action",
    "AlreadyCompleted",
    "AnyTask",
    "Ask",
    "AttemptView",
    "Attention",
    "Client",
    "Completion",
    "Confirmed",
    "Conflict",
    "Contended",
    "Context",
    "Cron",
    "EffectView",
    "Every",
    "Expired",
    "Failure",
    "Forbidden",
    "Forgotten",
    "Handle",
    "Invalid",
    "ItemTask",
    "JobView",
    "KeyReused",
    "Kind",
    "Limit",
    "Locked",
    "NotAParent",
    "NotFound",
    "NotMigrated",
    "NotReady",
    "NotRegistered",
    "Outcome",
    "OutcomeUnknown",
    "Outlast",
    "OutlastError",
    "Page",
    "Permanent",
    "Plan",
    "PlannedTask",
    "Principal",
    "Progress",
    "QueueChange",
    "QueueView",
    "QuotaExceeded",
    "Recovery",
    "Refused",
    "Retry",
    "RetryPolicy",
    "ScheduleView",
    "Settings",
    "Snooze",
    "StaleVersion",
    "State",
    "StillAdmitting",
    "Stopped",
    "StoreUnavailable",
    "Submission",
    "SyncClient",
    "SyncContext",
    "SyncTransaction",
    "Target",
    "TargetRef",
    "Task",
    "TaskOptions",
    "TaskState",
    "TaskView",
    "Transaction",
    "TransactionMisused",
    "Unique",
    "UniqueActive",
    "UniquePolicy",
]
